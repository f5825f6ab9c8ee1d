"""The style of documents, comments and messages, for house_rules.py: words by style_checks.txt, lengths, totals that only fall."""
import pathlib
import re
import subprocess
import tempfile
from collections import namedtuple

import comments

FOLDER = pathlib.Path(__file__).resolve().parent
COUNTS = 'scripts/style_counts.txt'
MESSAGES = ('engine/', 'lens/', 'apps/', 'python/fovea/', 'tools/', 'web/src/', 'web/engine/')
GLOSSARY = 'docs/reference/glossary.md'
TERMS = ('plan', 'slice', 'workspace', 'mass', 'lse', 'session', 'stage')
MOST_NAMED = 20  # places that one total names

Rule = namedtuple('Rule', 'level name scopes pattern use')
Place = namedtuple('Place', 'file line last text')  # lines of the comment or paragraph that holds it; what was found
Part = namedtuple('Part', 'line text')  # a comment, a literal, or a line of a document


def read_rules(path=FOLDER / 'style_checks.txt'):
    rules = []
    for line in path.read_text(encoding='utf-8').split('\n'):
        if not line.strip() or line.startswith('#'):
            continue
        head, use = re.split(r'\s+\|\s+', line)
        level, name, scopes, pattern = head.split(None, 3)
        pattern = int(pattern) if level == 'limit' else re.compile(pattern, re.IGNORECASE | re.MULTILINE)
        rules.append(Rule(level, name, scopes.split(','), pattern, use.strip()))
    return rules


def read_counts(root):
    path = root / COUNTS
    lines = path.read_text(encoding='utf-8').split('\n') if path.is_file() else []
    return {line.split()[0]: int(line.split()[1]) for line in lines if line.strip() and not line.startswith('#')}


def blank(match):
    return re.sub(r'[^\n]', ' ', match.group())


def prose(text):
    """A document without its code, comments and addresses; line numbers stay."""
    text = re.sub(r'^( *)(```|~~~).*?^ *\2[^\n]*$|<!--.*?-->', blank, text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r'`[^`\n]*`', lambda match: 'x' + ' ' * (len(match.group()) - 1), text)
    return re.sub(r'\]\([^)\s]*\)', lambda match: ']' + ' ' * (len(match.group()) - 1), text)


def paragraphs(text):
    """(line number, last line, words) of each paragraph: of a document, or of a comment with its list items and usage lines."""
    lines, begun = [], 0
    for number, line in enumerate(text.split('\n') + [''], 1):
        item = re.match(r'\s*(?:[-*|>@\\]|\d+\.|#+ |:)', line)
        if lines and (not line.strip() or item or re.match(r'.*\S   +\S', line)):
            yield begun, number - 1, ' '.join(lines)
            lines = []
        if line.strip() and not re.match(r'\s*(?:\||#+ )|.*\S   +\S', line):
            begun = begun if lines else number
            lines.append(re.sub(r'^\s*(?:[-*>]|\d+\.)\s+', '', line).strip())


def long_sentences(text, most):
    for line, last, words in paragraphs(text):
        for sentence in re.split(r'(?<=[.!?])["\')\]]*\s+(?=["(\[]?[A-Z0-9])', words):
            count = sum(1 for word in sentence.split() if re.search(r'\w', word))
            if count > most:
                yield line, last, f'{count} words: {sentence[:60].strip()} ...'


def long_cells(text, most):
    for number, line in enumerate(text.split('\n'), 1):
        if re.match(r'\s*\|', line):
            for cell in re.split(r'(?<!\\)\|', line):
                if len(cell.split()) > most:
                    yield number, number, f'{len(cell.split())} words: {cell.strip()[:60]} ...'


def unlinked_terms(name, text):
    """The first use of a term on a page, where it does not link to the glossary."""
    if name == GLOSSARY:
        return
    raw = re.sub(r'^( *)(```|~~~).*?^ *\2[^\n]*$|<!--.*?-->|`[^`\n]*`|^#.*?$|^\|.*?$', blank, text, flags=re.DOTALL | re.MULTILINE)
    for term in TERMS:
        first = re.search(rf'(?<![\w/.-]){term}(?:s|es)?(?![\w/-])', raw, re.IGNORECASE)
        if first and not re.match(r'[^\[\]]*\]\([^)]*glossary\.md', raw[first.start():]):
            line = raw.count('\n', 0, first.start()) + 1
            yield line, line, term


def parts_of(name, text):
    """{scope: parts} of a file."""
    if name.endswith('.md'):
        if name.startswith('docs/lab/'):
            return {}
        text = prose(text)
        parts = [Part(line, words) for line, _, words in paragraphs(text)]
        parts += [Part(number, line) for number, line in enumerate(text.split('\n'), 1) if re.match(r'\s*(?:\||#+ )|.*\S   +\S', line)]
        return {'md': parts, 'docs': parts if name.startswith('docs/') else []}
    found, literals = comments.comments_and_literals(name, text)
    return {'comment': [Part(*one) for one in found],
            'string': [Part(*one) for one in literals] if name.startswith(MESSAGES) else []}


def places_of_limit(rule, name, text, parts):
    document = name.endswith('.md')
    if not any(parts.get(scope) for scope in rule.scopes):
        return
    if rule.name == 'sentence' and document:
        yield from long_sentences(prose(text), rule.pattern)
    elif rule.name == 'table_cell' and document:
        yield from long_cells(prose(text), rule.pattern)
    elif rule.name == 'line' and document:
        for number, line in enumerate(text.split('\n'), 1):
            if len(line) > rule.pattern and not re.search(r'https?://\S{60}', line):
                yield number, number, f'{len(line)} columns'
    elif rule.name == 'glossary' and document:
        yield from unlinked_terms(name, text)
    elif rule.name == 'comment_sentence':
        for part in parts['comment']:
            for line, last, found in long_sentences(part.text, rule.pattern):
                yield part.line + line - 1, part.line + last - 1, found


def places_of(rules, name, text):
    """{rule's name: places} of a file."""
    parts, found = parts_of(name, text), {}
    # One part a line, so that words across a line's end are found and one search serves all parts of a scope.
    joined = {scope: '\n'.join(re.sub(r'\s*\n\s*', ' ', part.text).strip() for part in of_scope)
              for scope, of_scope in parts.items() if of_scope}
    for rule in rules:
        if rule.level == 'limit':
            places = [Place(name, *place) for place in places_of_limit(rule, name, text, parts)]
        else:
            places = []
            for scope in rule.scopes:
                for match in rule.pattern.finditer(joined.get(scope, '')):
                    part = parts[scope][joined[scope].count('\n', 0, match.start())]
                    places.append(Place(name, part.line, part.line + part.text.count('\n'), f'"{match.group()}"'))
        found[rule.name] = places
    return found


def added_lines(root):
    """{file: lines} that are newer than the totals, or None where nobody knows."""
    if not (root / '.git').exists():
        return None
    git = ['git', '-c', 'safe.directory=*', '-c', 'core.quotePath=off', '-C', str(root)]
    run = lambda *words: subprocess.run([*git, *words], capture_output=True, text=True)
    base = run('log', '-1', '--format=%H', '--', COUNTS).stdout.strip()
    if not base:
        return None
    added, name = {}, ''
    for line in run('diff', '-U0', '--no-color', '--no-ext-diff', '-M', base).stdout.split('\n'):
        if line.startswith('+++ '):
            name = line[6:]
        elif hunk := re.match(r'@@ -\S+ \+(\d+)(?:,(\d+))?', line):
            first, count = int(hunk[1]), int(hunk[2] or 1)
            added.setdefault(name, set()).update(range(first, first + count))
    for new in run('ls-files', '-o', '--exclude-standard').stdout.split('\n'):
        added[new] = None  # all of it
    return added


def is_new(place, added):
    lines = added.get(place.file, set())
    return lines is None or any(place.line <= line <= place.last for line in lines)


def check(root, files, record=False):
    """Violations in `files` ({name: text}), and notes about totals that fell. With `record` these become the recorded ones."""
    rules, recorded = read_rules(), read_counts(root)
    found = {rule.name: [] for rule in rules}
    for name, text in files.items():
        for rule, places in places_of(rules, name, text).items():
            found[rule] += places
    violations, notes, added = [], [], None
    for rule in rules:
        places = found[rule.name]
        allowed = recorded.get(rule.name, 0)
        if len(places) < allowed:
            notes.append(f'{rule.name} {allowed} -> {len(places)}')
            recorded[rule.name] = len(places)
        elif len(places) > allowed:
            added = added if added is not None else added_lines(root) or {}
            new = [place for place in places if is_new(place, added)] or places
            total = f' ({rule.name}: {len(places)}, {allowed} are allowed)' if allowed or rule.level != 'error' else ''
            violations += [f'{p.file}:{p.line}: {p.text}: {rule.use}{total}' for p in new[:MOST_NAMED]]
    if record and notes:
        (root / COUNTS).write_text(counts_text(rules, recorded), encoding='utf-8')
    return violations, notes


def counts_text(rules, counts):
    head = '# How many places each rule of style_checks.txt still finds. They may only fall: scripts/house_rules.py --record\n'
    return head + ''.join(f'{rule.name} {counts.get(rule.name, 0)}\n' for rule in rules
                          if rule.level != 'error' or counts.get(rule.name))


def self_test():
    """Shows in a made-up repository that totals only fall and that a rise names the new places."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        git = lambda *words: subprocess.run(['git', '-C', folder, '-c', 'user.name=x', '-c', 'user.email=x', *words], check=True,
                                            capture_output=True)
        (root / 'scripts').mkdir()
        (root / COUNTS).write_text('beside 3\n', encoding='utf-8')
        old = {'a.cpp': '// besi' + 'de a\n', 'b.cpp': '// x\nint x;\n'}
        (root / 'a.cpp').write_text(old['a.cpp'])
        (root / 'b.cpp').write_text(old['b.cpp'])
        git('init', '-q')
        git('add', '.')
        git('commit', '-q', '-m', 'x')
        errors = []
        if check(root, old, record=True) != ([], ['beside 3 -> 1']) or read_counts(root)['beside'] != 1:
            errors.append('a total that fell was not recorded')
        new = {**old, 'b.cpp': '// x\nint x;\n// besi' + 'de b\n'}
        (root / 'b.cpp').write_text(new['b.cpp'])
        violations, _ = check(root, new, record=True)
        if [violation.split(' ')[0] for violation in violations] != ['b.cpp:3:'] or read_counts(root)['beside'] != 1:
            errors.append(f'a total that rose does not name the new place: {violations}')
        return errors
