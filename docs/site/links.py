#!/usr/bin/env python3
"""Checks the links of a static site. Each one within it leads to a file and a place, and no page loads from another host.

    links.py SITE          exit 1 and a line for each that does not
    links.py --self-test   shows on a made-up site that each kind is found
"""
import html.parser
import pathlib
import re
import sys
import tempfile
import urllib.parse

LOADED = {'script': 'src', 'img': 'src', 'iframe': 'src', 'source': 'src', 'video': 'src', 'audio': 'src', 'embed': 'src', 'object': 'data'}
LOADED_LINKS = {'stylesheet', 'icon', 'preload', 'prefetch', 'preconnect', 'dns-prefetch', 'modulepreload', 'manifest', 'shortcut'}
ELSEWHERE = re.compile(r'(?:https?:)?//', re.IGNORECASE)
CSS_URL = re.compile(r'(?:url\(|@import)\s*["\']?((?:https?:)?/[^"\')\s]+)', re.IGNORECASE)


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.names, self.links, self.loaded = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.names |= {given[key] for key in ('id', 'name') if given.get(key)}
        if tag == 'a' and given.get('href'):
            self.links.append(given['href'])
        if tag == 'link' and LOADED_LINKS & set((given.get('rel') or '').split()):
            self.loaded.append(given.get('href') or '')
        if given.get(LOADED.get(tag)):
            self.loaded.append(given[LOADED[tag]])

    handle_startendtag = handle_starttag


def problems(site):
    """Returns one line for each. The web page in `page` and `fovea.html` has other tests: only that it is there is looked at."""
    site = pathlib.Path(site)
    pages = {path: Page(path.read_text(encoding='utf-8')) for path in sorted(site.rglob('*.html'))
             if path.relative_to(site).parts[0] not in ('page', 'fovea.html')}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site)
        for link in page.links + page.loaded:
            if ELSEWHERE.match(link):
                if link in page.loaded:
                    found.append(f'{name}: loads {link} from another host')
                continue
            parts = urllib.parse.urlsplit(link)
            if parts.scheme:
                continue
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= 'index.html'
            if not target.is_file() or not target.is_relative_to(site.resolve()):
                found.append(f'{name}: {link} leads nowhere')
            elif parts.fragment and target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].names:
                found.append(f'{name}: {link}: there is no such place')
    for path in site.rglob('*.css'):
        if path.relative_to(site).parts[0] != 'page':
            found += [f'{path.relative_to(site)}: loads {url} from outside' for url in CSS_URL.findall(path.read_text(encoding='utf-8'))]
    return sorted(set(found))


def self_test():
    bad = ('<a href="gone.html">', '<a href="ok.html#gone">', '<a href="#gone">', '<a href="../../outside.html">', '<img src="gone.png">',
           '<script src="https://example.org/a.js"></script>', '<link rel="stylesheet" href="//example.org/a.css">')
    good = '<p id="here"><a href="#here"><a href="sub/"><a href="https://example.org/"><a href="mailto:a@b"><a href="page/index.html#v=1">'
    with tempfile.TemporaryDirectory() as folder:
        site = pathlib.Path(folder)
        (site / 'sub').mkdir()
        (site / 'page').mkdir()
        (site / 'page/index.html').touch()
        (site / 'a.css').write_text('@import "https://example.org/a.css"; p { background: url(ok.png) }', encoding='utf-8')
        (site / 'ok.html').write_text(good, encoding='utf-8')
        (site / 'sub/index.html').write_text('<a href="../ok.html#here">', encoding='utf-8')
        for number, text in enumerate(bad):
            (site / f'bad{number}.html').write_text(text, encoding='utf-8')
        found = {problem.split(':')[0] for problem in problems(site)}
    wanted = {'a.css', *(f'bad{number}.html' for number in range(len(bad)))}
    print('\n'.join(sorted(wanted ^ found)) or f'each of {len(wanted)} problems was found and no other')
    return 1 if wanted != found else 0


if __name__ == '__main__':
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if sys.argv[1] == '--self-test':
        sys.exit(self_test())
    wrong = problems(sys.argv[1])
    print('\n'.join(wrong) or 'every link leads somewhere, nothing comes from another host')
    sys.exit(1 if wrong else 0)
