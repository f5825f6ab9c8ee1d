"""Sphinx's settings for the documentation site. build.py runs Sphinx on a copy of the documents (build/docs/source)."""
import gc
import importlib.util
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

gc.disable()  # collections walk the tree of all C++ names again and again: a third of the time of a first build

project = 'Fovea'
copyright = 'the Fovea authors, Apache-2.0'
version = release = re.search(r'project\(fovea\s+VERSION ([\d.]+)', (ROOT / 'CMakeLists.txt').read_text(encoding='utf-8'))[1]
language = 'en'

extensions = ['myst_parser', 'breathe']
if importlib.util.find_spec('sphinx_copybutton'):
    extensions.append('sphinx_copybutton')

myst_heading_anchors = 4  # as GitHub names headings
smartquotes = False
suppress_warnings = ['myst.strikethrough']

breathe_projects = {'fovea': str(ROOT / 'build/docs/xml')}
breathe_default_project = 'fovea'
breathe_default_members = ('members', 'undoc-members')
breathe_show_include = False
cpp_id_attributes = c_id_attributes = ['FOVEA_API']

html_theme = 'furo'
html_title = f'Fovea {release}'
html_favicon = str(ROOT / 'web/src/icon.svg')
html_static_path = ['static']
html_css_files = ['site.css']
html_js_files = ['site.js']
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    'light_css_variables': {'color-brand-primary': '#1d4ed8', 'color-brand-content': '#1d4ed8', 'color-api-name': '#1d4ed8'},
    'dark_css_variables': {'color-brand-primary': '#93b4ff', 'color-brand-content': '#93b4ff', 'color-api-name': '#93b4ff'},
}
copybutton_exclude = '.linenos, .gp, .go'
