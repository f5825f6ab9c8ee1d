#!/usr/bin/env python3
"""Builds the documentation site: one static folder, build/docs/site, that needs no server and asks no other host.

    build.py             runs Doxygen on the public headers (docs/api/build.py) and Sphinx on the documents
    build.py --no-api    the same with the XML that Doxygen wrote before
    build.py --page      only puts the built web page (build/fovea.html, build/web) into the site

Documents are copied to build/docs/source, where links to other files lead to pages with their text. The page of the
command line gets every option, if build/default or build/programs has the programs. Ends with exit code 1 where a link leads nowhere,
a page loads something from another host, or Sphinx warns about a document.
"""
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import links

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / 'scripts'))
import make_cli_reference  # noqa: E402

HERE = ROOT / 'docs' / 'site'
SOURCE, SITE = ROOT / 'build/docs/source', ROOT / 'build/docs/site'
# Folder, caption, and the pages that come first; the others follow by name.
SECTIONS = [
    ('start', 'Getting started', ('learn', 'levels', 'python', 'vulkan', 'cpp', 'cli')),
    ('guides', 'Guides', ('embedding', 'denoiser', 'decode-loop', 'varlen', 'paged-cache', 'cache-compaction')),
    ('concepts', 'Concepts', ('plans', 'numerics', 'kernels')),
    ('reference', 'Reference', ('c-api', 'headers', 'python', 'javascript', 'cli', 'errors', 'environment')),
    ('contributing', 'Contributing', ('guide', 'build', 'first-kernel', 'architecture')),
    ('lab', 'Lab notebook', ()),
    ('about', 'About', ('changelog', 'security', 'license')),
]
ELSEWHERE = {'README.md': 'index.md', 'CHANGELOG.md': 'about/changelog.md', 'SECURITY.md': 'about/security.md',
             'CONTRIBUTING.md': 'contributing/guide.md'}
HEADERS = ('engine/include/fovea', 'lens/include/fovea')
SHOWN = {'.c', '.h', '.cpp', '.hpp', '.comp', '.glsl', '.vert', '.frag', '.py', '.sh', '.mjs', '.ts', '.cmake', '.txt', '.fovea'}
INSIDE = 'https://site.invalid/'  # for Sphinx a link elsewhere; relative_links() makes it one to a file of the site
CODE = re.compile(r'```.*?```|`[^`\n]*`', re.DOTALL)
LINK = re.compile(r'(?<=\]\()([^)\s#]*)(#[^)\s]*)?(?=[)\s])')
# A place for the door to the web page, in a document; other readers of Markdown see nothing.
DOOR = '<!-- site: open the page -->'
OPTIONS = '<!-- site: options of the programs -->'
PLACEHOLDER = '<!doctype html><meta charset="utf-8"><title>Fovea</title><p>This copy of the documentation was made without the web page. ' \
              'Run <code>./dev web</code>, then <code>./dev docs</code>.'


def tracked_files():
    told = subprocess.run(['git', '-c', 'safe.directory=*', '-C', ROOT, 'ls-files', '-co', '--exclude-standard', '-z'],
                          capture_output=True, text=True)
    if told.returncode:
        return sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob('*') if path.is_file())
    return sorted(name for name in told.stdout.split('\0') if name and (ROOT / name).is_file())


def first_sentence(header):
    """Returns the first sentence of a header's comment, after its license, as a cell of a table."""
    plain = re.sub(r'^(?:#pragma once\n|\s|// SPDX.*\n|/\* SPDX.*?\*/|/\* SPDX.*\n \* ?)*', '', header)
    comment = re.match(r'(?:/\* ?)?((?:(?://| \*|)(?!\s*\*/)[^\n#]+\n?)+)', plain)
    words = ' '.join(re.sub(r'^(?:/\*| ?\*/?|//) ?|\*/$', '', line).strip() for line in (comment[1] if comment else '').split('\n'))
    return re.sub(r'([<*_`\[|])', r'\\\1', re.split(r'(?<!et al)\. ', words.strip())[0].rstrip(' .'))


def options_of_programs():
    """Returns the help of the built programs for the page of the command line; nothing if they are not built."""
    builds = (ROOT / 'build' / preset for preset in ('default', 'programs'))
    return next((make_cli_reference.options(build) for build in builds if not make_cli_reference.lacking(build)), '')


class Stage:
    """The copy of the documents that Sphinx reads. Files that did not change keep their time, so that Sphinx reads only the others."""

    def __init__(self):
        self.files = tracked_files()
        self.written = set()
        self.shown = {}  # paths in the repository and their pages
        self.pages = {name: name.removeprefix('docs/') for name in self.files if name.startswith('docs/') and name.endswith('.md')}
        self.pages |= ELSEWHERE if 'docs/index.md' in self.pages else {**ELSEWHERE, 'README.md': 'index.md'}

    def write(self, name, content):
        path = SOURCE / name
        content = content.encode() if isinstance(content, str) else content
        self.written.add(path)
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def page_of(self, target):
        """The page that shows `target`, a path in the repository; None: it is not in it."""
        if target in self.pages:
            return self.pages[target]
        if target in self.files or any(name.startswith(target + '/') for name in self.files):
            return self.shown.setdefault(target, f'files/{target}.html')
        return None

    def relinked(self, name, page, text):
        """`text` of the document `name` for its place `page` in the site."""
        blank = CODE.sub(lambda match: re.sub(r'[^\n]', ' ', match.group()), text)
        out, end = [], 0
        for match in LINK.finditer(blank):
            target, anchor = match[1], match[2] or ''
            if not target or ':' in target or target.endswith(('.png', '.svg')):
                continue
            found = self.page_of(os.path.normpath(os.path.join(os.path.dirname(name), target)))
            if found:
                out += [text[end:match.start()], os.path.relpath(found, os.path.dirname(page)) + anchor if found.endswith('.md') else INSIDE + found]
                end = match.end()
        out.append(text[end:])
        text = ''.join(out)
        text = text.replace(OPTIONS, options_of_programs()) if OPTIONS in text else text
        up = '../' * page.count('/')
        return text.replace(DOOR, f'<p class="door"><a href="{up}page/index.html">Open the page</a> '
                                  f'<a href="{up}fovea.html" download>Download it (one file, works offline)</a></p>')

    def documents(self):
        index = 'docs/index.md' if 'docs/index.md' in self.pages else 'README.md'
        for name, page in self.pages.items():
            if page != 'index.md' and (ROOT / name).exists():
                self.write(page, self.relinked(name, page, (ROOT / name).read_text(encoding='utf-8')))
        for name in self.files:
            if name.startswith('docs/images/') and name.endswith(('.png', '.svg')):
                self.write(name.removeprefix('docs/'), (ROOT / name).read_bytes())
        self.write('about/license.md', '# License\n\n```text\n' + (ROOT / 'LICENSE').read_text(encoding='utf-8') + '```\n')
        self.levels()
        self.headers()
        text = self.relinked(index, 'index.md', (ROOT / index).read_text(encoding='utf-8'))
        self.write('index.md', (text.replace('](docs/images/', '](images/') if index == 'README.md' else text) + self.trees())

    def levels(self):
        """The page's lessons, from the table that the page has them from."""
        lines = ['# The levels of the web page', '', 'For learners and teachers: what each level of the web page shows. '
                 'Each link opens the page at that level; the tour there (“Walk me through”) explains it step by step.', '', DOOR, '']
        for number, level in enumerate(json.loads((ROOT / 'lens/model/tables/levels.json').read_text(encoding='utf-8')), 1):
            lines += [f'## {number}. {level["name"]}', '', f'**{level["title"]}.** {level["lead"]}', '',
                      f'<p class="door"><a href="../page/index.html#v=1&amp;level={number}">Open level {number}</a></p>', '']
        self.write('start/levels.md', self.relinked('docs/start/levels.md', 'start/levels.md', '\n'.join(lines)))

    def headers(self):
        """A page for each public header: what Doxygen read in it, and a link to its text."""
        names = [name for name in self.files if name.startswith(HEADERS) and name.endswith(('.h', '.hpp'))]
        told = {}
        for name in names:
            short = re.sub(r'^\w+/include/', '', name)
            page = f'reference/headers/{short.removeprefix("fovea/")}.md'
            text = self.relinked(name, page, f'[The header itself]({os.path.basename(name)}), with its comments in their order.\n')
            self.write(page, f'---\norphan: true\n---\n# {short}\n\n{text}\n```{{eval-rst}}\n.. doxygenfile:: {short}\n   :project: fovea\n```\n')
            told[name] = (short, page, first_sentence((ROOT / name).read_text(encoding='utf-8')))
        lines = ['# C and C++ headers', '', 'For C and C++ programmers: every public name, as its header documents it. Include the first '
                 'group by their names; files in folders come with the header that names the folder.', '']
        for title, wanted in (('Headers to include', lambda short: short.count('/') == 1), ('Parts of them', lambda short: short.count('/') > 1)):
            lines += [f'## {title}', '', '| header | what it has |', '|---|---|']
            lines += [f'| [{short}]({page.removeprefix("reference/")}) | {about} |' for short, page, about in told.values() if wanted(short)] + ['']
        self.write('reference/headers.md', '\n'.join(lines))

    def source_pages(self):
        """Writes pages of the files that documents link to. A folder's page links to its files."""
        done = set()
        while missing := [target for target in self.shown if target not in done]:
            for target in missing:
                done.add(target)
                page = SITE / self.shown[target]
                if target in self.files:
                    body = f'<pre>{html.escape((ROOT / target).read_text(encoding="utf-8", errors="replace"))}</pre>'
                else:
                    inside = [name for name in self.files if name.startswith(target + '/') and (ROOT / name).suffix in SHOWN]
                    body = ''.join(f'<li><a href="{os.path.relpath(self.page_of(name), os.path.dirname(self.shown[target]))}">'
                                   f'{html.escape(name.removeprefix(target + "/"))}</a>' for name in inside)
                up = '../' * self.shown[target].count('/')
                page.parent.mkdir(parents=True, exist_ok=True)
                page.write_text(f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
                                f'<title>{target}</title><link rel="stylesheet" href="{up}_static/files.css">'
                                f'<p><a href="{up}index.html">Fovea</a></p><h1>{target}</h1>{body}\n', encoding='utf-8')

    def trees(self):
        text = ''
        for folder, caption, first in SECTIONS:
            names = sorted({path.stem for path in self.written if path.parent == SOURCE / folder and path.suffix == '.md'})
            names = [name for name in first if name in names] + [name for name in names if name not in first]
            if names:
                text += f'\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n' + '\n'.join(f'{folder}/{name}' for name in names) + '\n```\n'
        return text

    def clean(self):
        for path in SOURCE.rglob('*'):
            if path.is_file() and path not in self.written:
                path.unlink()


def add_page():
    """Puts the built web page into the site, or a word that says how to build it."""
    single, folder = ROOT / 'build/fovea.html', ROOT / 'build/web'
    if single.exists():
        shutil.copyfile(single, SITE / 'fovea.html')
    else:
        (SITE / 'fovea.html').write_text(PLACEHOLDER, encoding='utf-8')
    shutil.rmtree(SITE / 'page', ignore_errors=True)
    if (folder / 'index.html').exists():
        shutil.copytree(folder, SITE / 'page', ignore=shutil.ignore_patterns('*.br'))
    else:
        (SITE / 'page').mkdir()
        shutil.copyfile(SITE / 'fovea.html', SITE / 'page/index.html')


def python_with_sphinx():
    """This Python, or the system's, whose packages ./dev docs installs; None: neither has them."""
    for python in (sys.executable, '/usr/bin/python3'):
        if pathlib.Path(python).exists() and not subprocess.run([python, '-c', 'import sphinx, myst_parser, breathe, furo'],
                                                                capture_output=True).returncode:
            return python
    return None


def relative_links():
    for path in SITE.rglob('*.html'):
        text = path.read_text(encoding='utf-8')
        if INSIDE in text:
            path.write_text(text.replace(INSIDE, '../' * (len(path.relative_to(SITE).parts) - 1)), encoding='utf-8')


def complete_theme():
    """Puts in what Debian 12's Furo lacks. Its script and its style import others, one of them from a web server's own folder. Its
    style has lost the rule for readers whose system is dark."""
    path = SITE / '_static/styles/furo.css'
    text = path.read_text(encoding='utf-8')
    for name in re.findall(r'@import url\((/javascript/[\w./]+)\);', text):
        text = text.replace(f'@import url({name});', (pathlib.Path('/usr/share') / name[1:]).read_text(encoding='utf-8'))
    dark = re.search(r'body\[data-theme="dark"\] (\{[^}]*--color-background-primary[^}]*\})', text)
    if dark and 'prefers-color-scheme' not in text:
        text += f'\n@media (prefers-color-scheme: dark) {{ @media not print {{ body:not([data-theme="light"]) {dark[1]} }} }}\n'
    path.write_text(text, encoding='utf-8')
    script = SITE / '_static/scripts/furo.js'
    text = script.read_text(encoding='utf-8')
    if found := re.match(r'import (?:\* as )?Gumshoe from "\./(gumshoe-patched\.js)";\n', text):
        script.write_text((script.parent / found[1]).read_text(encoding='utf-8') + text[found.end():], encoding='utf-8')


def run_sphinx(python):
    """Returns the exit code, the warnings about documents, and the error. Warnings about headers are left out: Sphinx cannot parse all
    of C++, and several headers declare some names."""
    log = ROOT / 'build/docs/sphinx.log'
    told = subprocess.run([python, '-m', 'sphinx', '-q', '-j', 'auto', '-b', 'html', '-c', HERE, '-d', ROOT / 'build/docs/doctrees',
                           '-w', log, SOURCE, SITE], capture_output=True, text=True)
    lines = log.read_text(encoding='utf-8').splitlines() if log.exists() else []
    warnings = [re.sub(r'^.*?build/docs/source/', 'docs/', line) for line in lines
                if re.search(r'\b(WARNING|ERROR)\b', line) and not re.search(r'reference/headers/|build/docs/xml|/include/fovea/', line)]
    return told.returncode, warnings, told.stderr


def main(arguments):
    if arguments == ['--page']:
        add_page()
        return 0
    if arguments not in ([], ['--no-api']):
        sys.exit(__doc__)
    python = python_with_sphinx()
    if not python:
        print('fovea: SKIPPED: Sphinx with MyST, Breathe and Furo is not installed; ./dev docs installs it')
        return 2
    api = 0 if arguments else subprocess.run([sys.executable, ROOT / 'docs/api/build.py']).returncode
    stage = Stage()
    stage.documents()
    stage.clean()
    code, warnings, error = run_sphinx(python)
    if code:
        print(error)
        return code
    complete_theme()
    relative_links()
    stage.source_pages()
    (SITE / '.nojekyll').touch()  # GitHub Pages leaves out folders that begin with _, unless this file is there
    add_page()
    wrong = warnings + links.problems(SITE)
    size = sum(path.stat().st_size for path in SITE.rglob('*') if path.is_file())
    count = sum(1 for _ in SITE.rglob('*.html'))
    print('\n'.join(wrong) or f'build/docs/site/index.html: {count} pages, {size / 1e6:.1f} MB; every link leads somewhere, nothing comes from another host')
    return 1 if wrong or api else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
