#!/usr/bin/env python3
"""Lists every message by which the library, the programs, the page and the Python package reject something.

    messages.py [ROOT]        every message with its file and line, then those that break a rule; exit 1 if there is any
    messages.py --check       only those that break a rule
    messages.py --self-test   shows on made-up sources that every rule finds its message

A message is put together from the source: {name} is a value that is filled in, (a|b) a choice. The field of a message is in
brackets before it; programs print the text, after an option that it does not begin with.
The rules are of the project's style guide: one sentence that says what is what value, what is allowed, and what to do.
"""
import ast
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CPP = ('engine', 'lens', 'apps', 'tools', 'web/engine')
SCRIPT = ('web/src',)
PYTHON = ('python/fovea', 'scripts', 'python/tools')
SHELL = ('dev', 'scripts')

# Calls that make a message in every file: name -> (index of the field, index of the text); the format of printf where it is one.
MAKERS = {'Error': (1, 2), 'fail': (2, 3)}
FORMATS = {'fail'}
REASON = 'reason'  # in place of a field: what follows another message's colon
# Functions of some files whose returned texts are reasons, and calls that take one: name -> index of the text.
REASONS = re.compile(r'(refus|obstacle|oracle|reason|why|problem|wrong|unsupported|missing_from|cannot|complaint|fault)', re.IGNORECASE)
TAKERS = {'note', 'refuse', 'refuse_call', 'refused_session', 'add_problem', 'report_problem', 'note_problem'}
VALUES = {'problem', 'problem_', 'refusal', 'refusal_', 'why', 'reason', 'reason_', 'error_', 'fault', 'wrong', 'note'}
TEXT_CALLS = {'string', 'string_view', 'move', 'String', 'c_str'}

TOKEN = re.compile(r'''
    (?P<skip>\s+|//[^\n]*|/\*.*?\*/|\\\n)
  | (?P<raw>(?:u8|u|L)?R"(?P<mark>[^(\s]*)\((?P<body>.*?)\)(?P=mark)")
  | (?P<str>(?:u8|u|L)?"(?:\\.|[^"\\\n])*")
  | (?P<char>'(?:\\.|[^'\\\n])+')
  | (?P<num>\.?\d(?:[\w.']|(?<=[eEpP])[+-])*)
  | (?P<id>[A-Za-z_]\w*)
  | (?P<op>::|->|<<|>>|==|!=|<=|>=|&&|\|\||\+=|\+\+|--|[^\s\w])
''', re.VERBOSE | re.DOTALL)
ESCAPES = {'n': '\n', 't': '\t', '0': '\0', 'r': '\r'}


class Token:
    def __init__(self, kind, text, line):
        self.kind, self.text, self.line, self.mate = kind, text, line, None


def tokens_of(source):
    found, line, at = [], 1, 0
    while at < len(source):
        match = TOKEN.match(source, at)
        if not match:
            at += 1
            continue
        kind = match.lastgroup if match.lastgroup not in ('mark', 'body') else 'raw'
        text = match.group()
        if not match.group('skip'):
            kind = next(name for name in ('raw', 'str', 'char', 'num', 'id', 'op') if match.group(name))
            if kind == 'raw':
                found.append(Token('str', match.group('body'), line))
            elif kind == 'str':
                body = text[text.index('"') + 1:-1]
                found.append(Token('str', re.sub(r'\\(.)', lambda m: ESCAPES.get(m[1], m[1]), body), line))
            else:
                found.append(Token(kind, text, line))
        line += text.count('\n')
        at = match.end()
    stack = []
    for number, token in enumerate(found):
        if token.kind == 'op' and token.text in '([{':
            stack.append(number)
        elif token.kind == 'op' and token.text in ')]}' and stack:
            token.mate = stack.pop()
            found[token.mate].mate = number
    return found


class Source:
    """A file of C++, whose expressions it can put into words."""

    def __init__(self, name, text):
        self.name, self.tokens = name, tokens_of(text)
        self.defined = {}  # wrappers of this file: name -> (parameters, first, last token of the body)

    def top(self, first, last, separators):
        """Splits tokens [first, last) at separators outside of brackets."""
        parts, start, at = [], first, first
        while at < last:
            token = self.tokens[at]
            if token.kind == 'op':
                if token.text in '([{' and token.mate:
                    at = token.mate + 1
                    continue
                if token.text in separators:
                    parts.append((start, at))
                    start = at + 1
            at += 1
        return parts + [(start, last)]

    def arguments(self, opening):
        close = self.tokens[opening].mate
        return [] if close == opening + 1 else self.top(opening + 1, close, {','})

    def words(self, first, last):
        text = ''.join(t.text if t.kind != 'str' else f'"{t.text}"' for t in self.tokens[first:last])
        text = re.sub(r'\b(std::|static_cast<\w+>|fovea::)', '', text)
        return '{' + (text if len(text) <= 40 else text[:37] + '...') + '}'

    def text(self, first, last, values, depth=0):
        """The expression of tokens [first, last) as text."""
        tokens = self.tokens
        if first >= last or depth > 12:
            return ''
        if tokens[first].text == '(' and tokens[first].mate == last - 1:
            return self.text(first + 1, last - 1, values, depth + 1)
        questions = self.top(first, last, {'?'})
        if len(questions) > 1:
            rest = questions[0][1] + 1
            nested, at = 0, rest
            while at < last:
                token = tokens[at]
                if token.kind == 'op' and token.text in '([{' and token.mate:
                    at = token.mate + 1
                    continue
                nested += token.text == '?'
                if token.kind == 'op' and token.text == ':':
                    if nested == 0:
                        break
                    nested -= 1
                at += 1
            yes, no = self.text(rest, at, values, depth + 1), self.text(at + 1, last, values, depth + 1)
            if any(t.kind == 'str' for t in tokens[rest:last]) or values:
                return f'({yes}|{no})'
            return self.words(first, last)
        parts = self.top(first, last, {'+'})
        if len(parts) > 1:
            if any(a == b for a, b in parts) or not any(t.kind in ('str', 'char') or t.text in values for t in tokens[first:last]):
                return self.words(first, last)
            return ''.join(self.text(a, b, values, depth + 1) for a, b in parts)
        if all(t.kind == 'str' for t in tokens[first:last]):
            return ''.join(t.text for t in tokens[first:last])
        if any(t.kind == 'str' for t in tokens[first:last]) and all(t.kind in ('str', 'id') for t in tokens[first:last]):
            return ''.join(t.text if t.kind == 'str' else '{' + t.text + '}' for t in tokens[first:last])  # PRIu64 and others
        if last - first == 1 and tokens[first].kind == 'char':
            return tokens[first].text[1:-1]
        if last - first == 1 and tokens[first].text in values:
            return values[tokens[first].text]
        if tokens[last - 1].text == ')' and last - first >= 5 and tokens[last - 3].text == 'c_str' and tokens[last - 4].text == '.':
            return self.text(first, last - 4, values, depth + 1)
        opening = tokens[last - 1].mate
        if opening is not None and opening > first and tokens[last - 1].text in ')}' and tokens[opening - 1].kind == 'id' and \
                all(t.kind == 'id' or t.text == '::' for t in tokens[first:opening]):
            called, given = tokens[opening - 1].text, self.arguments(opening)
            if called in TEXT_CALLS and len(given) == 1:
                return self.text(*given[0], values, depth + 1)
            if called in ('cat', 'text_of'):
                return ''.join(self.text(a, b, values, depth + 1) for a, b in given)
            if called == 'to_string' and len(given) == 1:
                return self.text(*given[0], values, depth + 1) if tokens[given[0][0]].text in values else self.words(*given[0])
        return self.words(first, last)

    def printed(self, given, text_at, values):
        """The format at argument `text_at` with its arguments filled in."""
        pattern = self.text(*given[text_at], values)
        rest = [self.text(a, b, values) for a, b in given[text_at + 1:]]

        def fill(match):
            if match.group() == '%%':
                return '%'
            if '*' in match.group() and rest:
                rest.pop(0)
            return rest.pop(0) if rest else '{}'
        return re.sub(r"%%|%[-+0 #']*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:\{\w+\}|hh|h|ll|l|z|j)?[diuxXfgeEscp]?", fill, pattern)

    def definitions(self):
        """(name, parameters, first, last) of each function or lambda with a body: tokens of the body."""
        tokens = self.tokens
        for at, token in enumerate(tokens):
            if token.text != '{' or token.mate is None or at < 3:
                continue
            close = at - 1
            while close > 0 and tokens[close].text in ('const', 'noexcept', 'override', 'mutable') or \
                    tokens[close].kind == 'id' and tokens[close - 1].text in ('->', '::') or tokens[close].text in ('->', '::', '>', '<') or \
                    tokens[close].kind == 'id' and tokens[close - 1].text in ('<', '>'):
                close -= 1
            if tokens[close].text != ')' or tokens[close].mate is None:
                continue
            opening = tokens[close].mate
            before = tokens[opening - 1] if opening else None
            if before is None:
                continue
            if before.text == ']' and before.mate and before.mate >= 2 and tokens[before.mate - 1].text == '=':
                name = tokens[before.mate - 2].text
            elif before.kind == 'id' and before.text not in ('if', 'for', 'while', 'switch', 'return'):
                name = before.text
            else:
                continue
            names = []
            for a, b in (self.arguments(opening) if close > opening + 1 else []):
                named = [t.text for t in tokens[a:b] if t.kind == 'id']
                equals = [n for n in range(a, b) if tokens[n].text == '=']
                if equals:
                    named = [t.text for t in tokens[a:equals[0]] if t.kind == 'id']
                names.append(named[-1] if named else '')
            yield name, names, at, token.mate


class Messages:
    def __init__(self, sources):
        self.sources = sources
        self.shared = {}  # wrappers of headers and of files that declare them: name -> (source, parameters, first, last)
        for source in sources:
            for name, parameters, first, last in source.definitions():
                source.defined.setdefault(name, (source, parameters, first, last))
        aliases = [(source, source.tokens[at - 1].text, source.tokens[at + 1].text)
                   for source in sources for at in range(2, len(source.tokens) - 2)
                   if source.tokens[at].text == '=' and source.tokens[at - 2].text == 'auto' and source.tokens[at + 2].text == ';']
        declared = {(t.text, s.tokens[n + 1].text) for s in sources if s.name.endswith(('.hpp', '.h'))
                    for n, t in enumerate(s.tokens[:-1]) if t.kind == 'id'}
        for source in sources:
            for name, entry in source.defined.items():
                if (name, '(') in declared:
                    self.shared.setdefault(name, entry)
        self.aliases = {(source.name, name): made for source, name, made in aliases}
        self.wrappers = {}
        for _ in range(3):
            for source in sources:
                for name, entry in source.defined.items():
                    if name not in MAKERS and (source.name, name) not in self.wrappers and self.made_in(entry):
                        self.wrappers[source.name, name] = entry

    def entry(self, source, name):
        name = self.aliases.get((source.name, name), name)
        local = source.defined.get(name)
        if local is None or (source.name, name) not in self.wrappers:
            local = self.shared.get(name)
            if local is None or (local[0].name, name) not in self.wrappers:
                return None
        return local

    def made_in(self, entry):
        """True if a function makes a message of one of its parameters."""
        source, parameters, first, last = entry
        if not [p for p in parameters if p]:
            return False
        values = {p: '\1' + p for p in parameters if p}
        return any('\1' in text for _, _, _, text in self.calls(source, first, last, values))

    def calls(self, source, first, last, values=None, depth=0):
        """(token, name, field, text) of each message made between two tokens."""
        values = values or {}
        tokens = source.tokens
        for at in range(first, last):
            token = tokens[at]
            if token.text == '{' and token.mate and tokens[at - 1].text not in MAKERS and tokens[at + 1].text.startswith('FOVEA_'):
                given = source.arguments(at)
                if len(given) in (3, 4):  # return {code, field, text}
                    yield at, 'Error', source.text(*given[1], values), source.text(*given[2], values)
                continue
            if token.kind != 'id' or at + 1 >= len(tokens) or tokens[at + 1].text not in ('(', '{') or tokens[at + 1].mate is None:
                continue
            given = source.arguments(at + 1)
            if token.text in MAKERS:
                field_at, text_at = MAKERS[token.text]
                if len(given) <= text_at:
                    if token.text == 'fail' and len(given) == 1 and any(source.tokens[n].kind == 'str' and source.tokens[n - 1].text in '(+' for n in range(*given[0])) and not any(source.tokens[n].text in ('(', '{') for n in range(*given[0])):
                        yield at, token.text, '', source.text(*given[0], values)
                    continue
                field = source.text(*given[field_at], values)
                text = source.printed(given, text_at, values) if token.text in FORMATS else source.text(*given[text_at], values)
                yield at, token.text, field, text
                continue
            entry = self.entry(source, token.text) if hasattr(self, 'wrappers') else None
            if entry and depth < 4:
                maker, parameters, begin, end = entry
                if begin < at < end and maker is source:
                    continue
                passed = {p: source.text(a, b, values) for p, (a, b) in zip(parameters, given) if p}
                if not any(' ' in re.sub(r'\{[^}]*\}', '', text) or '\1' in text for text in passed.values()):
                    continue  # the message is the wrapper's own, and listed there
                if '...' in ''.join(t.text for t in maker.tokens[maker.tokens[begin - 1].mate or begin:begin]):
                    text_at = len(parameters) - 2
                    if 0 <= text_at < len(given):
                        passed[parameters[text_at]] = source.printed(given, text_at, values)
                inner = [(field, text) for _, _, field, text in self.calls(maker, begin, end, passed, depth + 1)]
                best = next((pair for pair in inner if any(v and v in pair[1] for v in passed.values())), inner[0] if inner else None)
                if best:
                    yield at, token.text, *best
            elif token.text in TAKERS and given:
                yield at, token.text, '', source.text(*given[-1], values)

    def all(self):
        for source in self.sources:
            tokens, seen = source.tokens, set()
            for at, _, field, text in self.calls(source, 0, len(tokens)):
                end = tokens[at].mate or tokens[at + 1].mate
                if readable(text) and any(t.kind == 'str' for t in tokens[at:end]):
                    seen.update(range(at, end))
                    yield source.name, tokens[at].line, field, text
            for name, _, first, last in source.definitions():
                if REASONS.search(name):
                    for at in range(first, last):
                        if tokens[at].text == 'return' and at not in seen:
                            end = source.top(at + 1, last, {';'})[0][1]
                            text = source.text(at + 1, end, {})
                            if at + 1 not in seen and any(t.kind == 'str' and ' ' in t.text for t in tokens[at + 1:end]):
                                seen.update(range(at, end))
                                yield source.name, tokens[at].line, REASON, text
            for at in range(len(tokens) - 2):
                if tokens[at].kind == 'id' and tokens[at].text in VALUES and tokens[at + 1].text == '=' and at not in seen:
                    ends = source.top(at + 2, len(tokens), {';', ',', ')'})
                    text = source.text(at + 2, ends[0][1], {})
                    if at + 2 not in seen and any(t.kind == 'str' and ' ' in t.text for t in tokens[at + 2:ends[0][1]]):
                        seen.update(range(at, ends[0][1]))
                        yield source.name, tokens[at].line, '', text


def readable(text):
    return bool(re.search(r'[A-Za-z]{2}', re.sub(r'\{[^}]*\}', '', text)))


# ---- Python, TypeScript, shell ----

def python_text(node):
    """A string of Python as text, or nothing."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return ''.join(part.value if isinstance(part, ast.Constant) else '{' + ast.unparse(part.value) + '}' for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = python_text(node.left), python_text(node.right)
        return None if left is None and right is None else (left or '{}') + (right or '{}')
    return None


def python_messages(name, source):
    for node in ast.walk(ast.parse(source)):
        call = node.exc if isinstance(node, ast.Raise) else node
        if not isinstance(call, ast.Call) or not call.args:
            continue
        called = ast.unparse(call.func)
        if not (isinstance(node, ast.Raise) or called in ('sys.exit', 'parser.error', 'fail')):
            continue
        text = python_text(call.args[0])
        if text and ' ' in text:
            field = python_text(call.args[-1]) if called in ('Refused', 'FoveaError') and len(call.args) > 1 else None
            yield name, call.args[0].lineno, field or '', text


def script_messages(name, source):
    call = re.compile(r'\bnew (?:Error|RangeError|TypeError|GpuRefusal)\(\s*(`(?:\\.|[^`\\])*`|"(?:\\.|[^"\\\n])*")')
    for match in call.finditer(source):
        text = re.sub(r'\$(?=\{)', '', match[1][1:-1])
        if readable(text):
            yield name, source.count('\n', 0, match.start(1)) + 1, '', text


def shell_messages(name, source):
    call = re.compile(r'^[^#\n]*?(?:\bdie |\bfail |\becho )"((?:\\.|[^"\\])+)"([^\n]*)', re.MULTILINE)
    for match in call.finditer(source):
        said = re.match(r'[^\n]*?(\bdie|\bfail) "', match[0]) or '>&2' in match[2]
        if said and readable(match[1]):
            yield name, source.count('\n', 0, match.start(1)) + 1, '', re.sub(r'\$(\{[^}]*\}|\w+)', lambda m: '{' + m[1].strip('{}') + '}', match[1])


# ---- the rules ----

# Words that a message must not have, and what to write instead.
WORDS = [
    (r'\b(is|are) (of|no|none)\b', 'say what the value is and what it must be, not "is of" or "is no"'),
    (r'\b(which|that) (is|are) not (read|computed|known)\b|\b(is|are) not (read|computed)\b|\bnot known here\b', 'say "not supported"'),
    (r'\bwhole numbers?\b', 'integer'),
    (r'\btoken numbers?\b', 'token ID'),
    (r'\bdrivers? of software\b', 'software driver'),
    (r'\bmatrix units?\b', 'cooperative matrices'),
    (r'\bproducts of b?float16\b|\bfactors in b?float16\b|\bfloat16 factors\b', 'float16 inputs'),
    (r'\bfewer bits\b', 'quantized KV cache'),
    (r'\bjoint projection\b', 'fused QKV projection'),
    (r'\bheads off\b', 'head ablation'),
    (r'\bbut for\b|\bbeside\b|(?<![-\w])behind\b|\bin words\b|\bby turns\b|\bat hand\b', 'except, next to, after, as text, interleaved, available'),
    (r'\bstands?\b|\blies\b', 'is, is stored'),
    (r'\bsaid to\b|\bis said by\b|\bis told\b', 'reported'),
    (r"\bthe host's\b|\bits host\b", 'the application'),
    (r'(?<!post-)\bprocessor\b', 'CPU'),
    (r'\bstrangers?\b|\bmend(s|ed)?\b', 'untrusted, fixed'),
    (r'\bin [01] \.\. |\bis not in \{', '"it must be from A to B"'),
    (r'(?<!\d - )\b1 (bytes|tokens|workers|ranks|heads|rows)\b(?! \()', 'a number in a message is filled in, with its plural'),
]
# Openings that only make sense after a field that is printed before them.
FRAGMENT = re.compile(r'(is|are|was|has|have|needs|takes|gives|says|goes|stands|lies|must|does|do|of|which|that|it|its|they|given) ')
SENTENCES = re.compile(r'[.!?] [A-Z]')
# A location that a reader of files puts before its reasons: "byte 8: ", "tensor 'x', byte 8: ".
PLACE = re.compile(r"^(?:[\w ]*\{[^}]*\}'?,? ?|(?:entry|tensor|chunk|key|row|column|line|byte|header|node|part|layer)\b[^:]*|\{[^}]*\}|\([^)]*\)): (?=\S)")


def faults(field, text):
    """Why a message breaks the rules of the style guide."""
    plain = re.sub(r'\{[^}]*\}', '{}', text)
    for pattern, why in WORDS:
        found = re.search(pattern, plain, re.IGNORECASE)
        if found:
            yield f'"{found.group().strip()}": {why}'
    name = re.sub(r'^tensor ', '', field)
    if field and not field.startswith('{') and re.match(rf"{re.escape(field)}: ?(?:{re.escape(name)}\b)?", text):
        yield 'the field is printed twice'
    if SENTENCES.search(plain):
        yield 'more than one sentence'
    rest = plain
    while PLACE.match(rest) and len(rest) - len(PLACE.sub('', rest, count=1)) < 60:
        rest = PLACE.sub('', rest, count=1)
    if rest == plain and field != REASON and FRAGMENT.match(plain):
        yield f'"{plain[:24]}..." has no subject: begin with what it is about'
    if plain.rstrip().endswith('.') and not plain.endswith('...'):
        yield 'ends in a full stop'
    if plain.count(';') > 2:
        yield 'more than two parts after the first'


def collect(root, files):
    """(file, line, field, text) of all messages."""
    cpp = [Source(name, (root / name).read_text(encoding='utf-8')) for name in files
           if name.startswith(CPP) and name.endswith(('.cpp', '.hpp', '.h'))]
    found = list(Messages(cpp).all())
    for name in files:
        path = root / name
        if name.startswith(PYTHON) and name.endswith('.py'):
            found += python_messages(name, path.read_text(encoding='utf-8'))
        elif name.startswith(SCRIPT) and name.endswith('.ts'):
            found += script_messages(name, path.read_text(encoding='utf-8'))
        elif name == 'dev' or name.startswith('scripts') and name.endswith('.sh'):
            found += shell_messages(name, path.read_text(encoding='utf-8'))
    return sorted(set(found))


def tracked(root):
    listed = subprocess.run(['git', '-c', 'safe.directory=*', '-C', str(root), 'ls-files', '-co', '--exclude-standard', '-z'],
                            check=True, capture_output=True, text=True).stdout if (root / '.git').exists() else None
    names = listed.split('\0') if listed else [str(path.relative_to(root)) for path in root.rglob('*')]
    return sorted(name for name in names if name and (root / name).is_file())


# Sources with planted messages: each must be found, and break a rule or none.
PLANTED = {
    'engine/problem/planted.cpp': '''
FoveaResult check(uint32_t heads, FoveaDiag* diag) {
    if (!heads) return fail(diag, FOVEA_INVALID_ARGUMENT, "heads", "heads: heads is 0; it must be at least 1");
    if (heads > 9) return fail(diag, FOVEA_INVALID_ARGUMENT, "heads", "heads is %u; it must be "
                               "at most %d", heads, 9);
    return fail(diag, FOVEA_UNSUPPORTED, "kernel", "kernel %s runs on a driver of software", name);
}
const char* obstacle(const Plan& p) { return p.masked ? "a mask, which is not read" : "it does not support masks"; }
''',
    'lens/files/planted.hpp': '''
inline Error malformed(std::string field, std::string text) {
    return {FOVEA_INVALID_ARGUMENT, std::move(field), cat("byte ", 0, ": ", text)};
}
''',
    'lens/files/planted.cpp': '''
Result<void> read(std::string_view text) {
    const auto refuse = [&](std::string why) { return malformed("file", why); };
    if (text.empty()) return refuse("there is no header");
    if (text[0] == '{') return malformed("length", cat("length is ", text.size(), "; the limit is ", 9));
    return Error{FOVEA_INVALID_ARGUMENT, "file", "the file is damaged. Open another one"};
}
''',
    'apps/fovea/planted.cpp': '''
Error bad(std::string_view option, std::string text) { return Error{FOVEA_INVALID_ARGUMENT, std::string(option), text}; }
Result<int> run(const Arguments& a) {
    if (a.has("--check")) return bad("--check", "is of the lessons; give one");
    if (a.has("--seed")) return bad("--seed", "--seed needs --dropout; give both or neither");
    return bad("--count", std::string("--count is '") + text + "'; it must be a whole number");
}
''',
    'python/fovea/planted.py': '''
def check(value):
    if value is None:
        raise Refused(f'parts: parts is {value!r}', 'parts')
    raise Refused(f'parts is {value!r}; it must be a list', 'parts')
''',
    'web/src/planted.ts': '''
if (!q) throw new Error("is not among the tensors of the file");
throw new Error(`queries are ${q.dim} wide and keys ${k.dim}; they must be equal`);
''',
    'scripts/planted.sh': '''
[ -e "$1" ] || die "there is no $1"
echo "fovea: $1 is missing; run ./dev setup" >&2
''',
}
WRONG = ['heads: heads is 0', 'a driver of software', 'which is not read', 'there is no header', 'is damaged. Open',
         'is of the lessons', 'a whole number', 'parts: parts is', 'is not among', 'there is no {1}']
RIGHT = ['heads is {heads}; it must be at most {9}', 'byte {0}: length is {text.size()}; the limit is {9}', '--seed needs --dropout',
         'parts is {value}; it must', 'queries are {q.dim} wide', 'fovea: {1} is missing']


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in PLANTED.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding='utf-8')
        found = collect(root, tracked(root))
    errors = [f'not found: {part}' for part in WRONG + RIGHT if not any(part in text for *_, text in found)]
    for name, line, field, text in found:
        why = list(faults(field, text))
        errors += [f'no fault: {text}' for part in WRONG if part in text and not why]
        errors += [f'wrongly: {text}: {why}' for part in RIGHT if part in text and why]
    print('\n'.join(errors) or f'{len(WRONG)} planted messages break a rule and {len(RIGHT)} none')
    return 1 if errors else 0


def main(arguments):
    if arguments == ['--self-test']:
        return self_test()
    check = arguments == ['--check']
    root = ROOT if check or not arguments else pathlib.Path(arguments[0])
    found = collect(root, tracked(root))
    bad = 0
    for name, line, field, text in found:
        if not check:
            print(f'{name}:{line}: {"[" + field + "] " if field else ""}{text}')
    for name, line, field, text in found:
        for why in faults(field, text):
            bad += 1
            print(f'{name}:{line}: {text}\n    {why}')
    print(f'{len(found)} messages, {bad} break a rule')
    return 1 if bad or not found else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
