"""Writes chat_templates.json: templates, what they are given, and the text that Jinja2 makes of them with the settings of
transformers' apply_chat_template. Needs the package jinja2 only.

    python3 tests/model/make_chat_templates.py [RANDOM_TEMPLATES]
"""
import json
import pathlib
import random
import sys

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Generation(Extension):
    """`generation` blocks, which transformers uses to mark an assistant's tokens."""
    tags = {'generation'}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(['name:endgeneration'], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method('_inner'), [], [], body).set_lineno(line)

    def _inner(self, caller):
        return caller()


def rejects(message):
    raise jinja2.exceptions.TemplateError(message)


ENVIRONMENT = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
ENVIRONMENT.filters['tojson'] = lambda x, ensure_ascii=False, indent=None, separators=None, sort_keys=False: json.dumps(
    x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
ENVIRONMENT.globals['raise_exception'] = rejects

CHATS = [
    [('user', 'Hello there')],
    [('system', '  You are brief.\n'), ('user', 'Why is the sky blue?')],
    [('user', 'One'), ('assistant', 'two'), ('user', "it's \"three\" <|end|>")],
    [('system', 'Be kind.'), ('user', 'Über 日本'), ('assistant', ' ok \n\n'), ('user', 'x')],
    [],
]

# One template in the manner of each well-known format.
FORMATS = {
    'ChatML': """{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}{% endfor %}
{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}""",
    'ChatML with a default system message': """{%- if messages and messages[0].role == 'system' -%}
    {{- '<|im_start|>system\n' + messages[0].content | trim + '<|im_end|>\n' }}
    {%- set rest = messages[1:] -%}
{%- else -%}
    {{- '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}
    {%- set rest = messages -%}
{%- endif -%}
{%- for m in rest %}
    {{- '<|im_start|>' ~ m.role ~ '\n' ~ m.content ~ '<|im_end|>' }}
    {{- '\n' if not loop.last else '' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '\n<|im_start|>assistant\n' }}
{%- endif %}""",
    'headers': """{{- bos_token }}
{%- set system_message = "" %}
{%- if messages and messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none %}{{- "Environment: tools\\n" }}{%- endif %}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %}
""",
    'INST': """{% if messages and messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}{% for message in loop_messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}{% if loop.index0 == 0 and system_message != false %}{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}{% else %}{% set content = message['content'] %}{% endif %}{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}""",
    'turns': """{{ bos_token }}
{%- if messages and messages[0]['role'] == 'system' -%}
    {{ raise_exception('System role not supported') }}
{%- endif -%}
{%- for message in messages -%}
    {%- if (message['role'] == 'assistant') -%}
        {%- set role = "model" -%}
    {%- else -%}
        {%- set role = message['role'] -%}
    {%- endif -%}
    {{ '<start_of_turn>' + role + '\n' + (message['content'] | trim) + '<end_of_turn>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model\n'}}
{%- endif -%}
""",
    'roles as tags': """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\n' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>\n' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>\n'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}""",
    'the last question, from behind': """{%- set ns = namespace(last=messages|length - 1, found=false) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if not ns.found and message.role == "user" and message.content is string and not (message.content.startswith('<tool') and message.content.endswith('</tool>')) %}
        {%- set ns.found = true %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- set content = message.content if message.content is string else '' %}
    {%- if message.role == "assistant" %}
        {%- if '</think>' in content %}
            {%- set content = content.split('</think>')[-1].lstrip('\n') %}
        {%- endif %}
        {%- generation %}{{ content }}{% endgeneration %}
    {%- else %}
        {{- message.role.upper() ~ (' (last)' if loop.index0 == ns.last else '') ~ ': ' ~ content }}
    {%- endif %}
    {{- '\n' }}
{%- endfor %}
{%- if enable_thinking is defined and enable_thinking is false %}{{ '<think>\n\n</think>' }}{% endif %}
""",
    'a macro': """{%- macro line(role, text='none', end="\\n") -%}
[{{ role | capitalize }}] {{ text }}{{ end }}
{%- endmacro -%}
{%- for message in messages if message.role != 'system' %}
{{- line(message.role, message.content | replace('\n', ' ')) }}
{%- else %}
{{- line('nobody', end='!') }}
{%- endfor %}""",
    'tools as JSON': """{%- if tools %}{{ tools | tojson(indent=4) }}{% endif %}
{%- for m in messages %}{{ m | tojson }},{% endfor %}{{ messages | map(attribute='role') | join(', ') }}""",
}

SMALL = [
    "{{ 1 + 2 * 3 - 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 1.5 + 2 }} {{ 2 * 'ab' if false else 'ab' * 2 }}",
    "{{ 'a' ~ 1 ~ true ~ none ~ [1, 'b', 1.0] ~ {'k': \"it's\"} }}",
    "{{ not true or false and true }} {{ 1 < 2 <= 2 < 3 }} {{ 1 < 2 > 2 }} {{ 'b' in 'abc' }} {{ 2 not in [1, 3] }}",
    "{{ undefined_name }}|{{ undefined_name is defined }}|{{ undefined_name | default('d') }}|{{ '' | default('e', true) }}",
    "{{ messages[99] is undefined }} {{ messages[-1].role if messages else 'none' }}",
    "{{ 'abcdef'[1:4] }} {{ 'abcdef'[::-1] }} {{ 'abcdef'[-2:] }} {{ [1,2,3,4,5][::2] }} {{ [1,2,3][5:] }} {{ [1,2,3,4][-3:-1] }}",
    "{{ ' x '.strip() }}|{{ 'xxaxx'.strip('x') }}|{{ 'a b  c'.split() }}|{{ 'a,b,c'.split(',', 1) }}|{{ 'a,b,c'.rsplit(',', 1) }}",
    "{{ 'hello world'.title() }} {{ 'HELLO'.capitalize() }} {{ 'hi'.upper() }} {{ 'abc'.replace('b', 'x') }} {{ 'abc'.find('c') }}",
    "{{ ', '.join(['a', 'b']) }} {{ 'abc'.startswith('ab') }} {{ 'abc'.endswith(('x', 'bc')) }}",
    "{{ {'a': 1, 'b': 2}.items() | list }} {{ {'a': 1}.get('b', 3) }} {{ {'a': 1}.get('c') }} {{ {'a': 1}.keys() | list }}",
    "{{ [3, 1, 2] | length }} {{ 'äöü' | length }} {{ [1, 2] | first }} {{ [1, 2] | last }} {{ [1, 2, 1] | unique | list }}",
    "{{ '42' | int + 1 }} {{ 'x' | int }} {{ 'x' | int(7) }} {{ '1.5' | float }} {{ -3 | abs }} {{ (-3) | abs }}",
    "{{ [1, 2, 3, 4] | select('even') | list }} {{ [1, 2, 3] | reject('odd') | list }} {{ ['a', 'b'] | map('upper') | list }}",
    "{{ messages | selectattr('role', 'equalto', 'user') | list | length }} {{ messages | rejectattr('role', 'equalto', 'user') | map(attribute='content') | list }}",
    "{% for k, v in {'x': 1, 'y': [2]}.items() %}{{ k }}={{ v }}{{ ', ' if not loop.last }}{% endfor %}",
    "{% for i in range(10) %}{% if i == 2 %}{% continue %}{% endif %}{% if i > 4 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "{% for i in range(5, 0, -2) %}{{ loop.index }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.previtem }}/{{ loop.nextitem }} {% endfor %}",
    "{% set x = 1 %}{% for i in [1, 2] %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}",
    "{% set ns = namespace(n=0) %}{% for i in range(4) %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}",
    "{% set text %}a {{ 1 + 1 }}\n b{% endset %}[{{ text }}]",
    "a\n  {% if true %}\n  b\n  {% endif %}\n  c {%+ if true %} d{% endif +%}\ne\n",
    "  {# a comment #}  \nx {#- another -#}  y\n{{ '}}' }} {{ \"{%\" }}\n\n",
    "{{- '  a  ' -}}   b   {%- if true -%}   c   {%- endif -%}   d",
    "{{ true is true }} {{ 1 is number }} {{ 'a' is string }} {{ [] is iterable }} {{ {} is mapping }} {{ none is none }} {{ 4 is divisibleby 2 }} {{ 'x' is in ['x'] }}",
    "{{ 1 if false }}|{{ 'a' if 0 else 'b' if '' else 'c' }}|{{ [] or 'empty' }}|{{ 'x' and 'y' }}",
    "{{ '\\x41\\u00e9\\t\\'' }} {{ \"\\\"\" }} {{ 'a' 'b' }} {{ 'a\\qb' }}",
    "{{ {'a': [1, {'b': none}], 'c': 'ä\"\\n'} | tojson }} {{ [] | tojson(indent=2) }} {{ [1, {'a': 2}] | tojson(indent=2) }}",
    "{{ 'text' | trim | upper | lower | title | string }} {{ 'x' | safe }} {{ [1, 2] | join('-') }} {{ 'abc' | reverse }} {{ [1, 2] | reverse | list }}",
    "{{ (1, 2) | list }} {{ (1,) | length }} {{ [1] + [2] }} {{ [1, 2] == [1, 2.0] }} {{ {'a': 1} == {'a': 1} }} {{ true == 1 }}",
    "{{ raise_exception('no') }}",
    "{{ undefined_name.member }}",
    "{{ none.member is defined }} {{ 'text'.member is defined }} {{ messages.length is defined }}",
    "{{ 1 + 'a' }}",
    "{{ 1 < 'a' }}",
    "{{ {'b': 1, 'A': 2} | dictsort | list }} {{ {'b': 1}.values() | list }} {{ 3 is odd }} {{ 2.0 is float }} {{ 2 is integer }} {{ true is boolean }}",
    "{% if messages %}{% for m in messages %}{{ loop.index0 }}{% endfor %}{% else %}none{% endif %}",
    "{{ [1, 2] | join(d=', ') }} {{ 'x' | int(default=5) }} {{ 'x' | float(2) }} {{ nothing | default(default_value='d') }}",
    "{{ {'a': 'ä', 'b': [1]} | tojson(ensure_ascii=false, indent=2) }} {{ 'aXbX' | replace(old='X', new='-') }} {{ 'xax' | trim(chars='x') }}",
    "{{ [{'f': {'n': 'a'}}, {'f': {'n': 'b'}}] | map(attribute='f.n') | join(', ') }} {{ [{'a': 1}, {'a': 2}] | join('+', attribute='a') }}",
    "{{ '\\u3000 x\\u00a0'.strip() ~ '|' ~ '\\u2003 y ' | trim ~ '|' ~ 'a\\u3000b  c'.split() }}",
    "{{ 10000000.0 * 1000000000.0 }} {{ 1 / 100000 }} {{ 2.50 }} {{ 1 / 3 }}",
    "{% macro f(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ f(1, b=3) }}{{ f(1, 2, 3) }}",
    "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, c=3) }}",
    "{{ 'a' | upper(1) }}",
    "{{ 'a'.split('') }}",
    "{{ {'a': 1}.get('b', {'c': 2}) }} {% for x in [1] %}{{ loop.depth }}{{ loop.depth0 }}{% endfor %}",
    "{% for m in [] %}x{% else %}empty{% endfor %}{% for a, b in [[1, 2], [3, 4]] %}{{ a }}{{ b }}{% endfor %}",
]


class Drawn:
    """Random templates of what the reader knows, of values whose kind is known, so that few of them fail."""

    def __init__(self, seed):
        self.r = random.Random(seed)

    def pick(self, *choices):
        return self.r.choice(choices)

    def text(self, depth):
        if depth <= 0:
            return self.pick("'a b'", "' x\\n'", "''", "role", "bos_token", "messages[0].content", "'eé'|replace('é', 'E')")
        t = lambda: self.text(depth - 1)
        return self.pick(
            lambda: f"({t()} + {t()})", lambda: f"({t()} ~ {self.integer(depth - 1)})", lambda: f"{t()}|trim",
            lambda: f"({t()}).strip('ax ')", lambda: f"({t()})|upper", lambda: f"({t()})[{self.r.randint(-3, 3)}:]",
            lambda: f"({t()})[::{self.pick(-1, 2, -2)}]", lambda: f"({t()} if {self.truth(depth - 1)} else {t()})",
            lambda: f"({t()})|replace('a', {t()})", lambda: f"{self.list(depth - 1)}|join({t()})",
            lambda: f"({t()}).split({self.pick('', chr(39) + ' ' + chr(39))})|join('-')", lambda: f"{self.list(depth - 1)}|tojson",
            lambda: f"({t()})|capitalize", lambda: f"({t()}).title()", lambda: f"({t()})|default({t()}, true)")()

    def integer(self, depth):
        if depth <= 0:
            return str(self.r.randint(0, 9))
        i = lambda: self.integer(depth - 1)
        return self.pick(lambda: f"({i()} {self.pick('+', '-', '*')} {i()})", lambda: f"({i()} // {self.r.randint(1, 5)})",
                         lambda: f"({i()} % {self.r.randint(1, 5)})", lambda: f"({self.text(depth - 1)})|length",
                         lambda: f"{self.list(depth - 1)}|length", lambda: f"(-{i()})", lambda: f"({self.text(depth - 1)})|int")()

    def list(self, depth):
        if depth <= 0:
            return self.pick("[1, 2, 3]", "['b', 'a']", "[]", "range(4)|list")
        li = lambda: self.list(depth - 1)
        return self.pick(lambda: f"[{self.text(depth - 1)}, {self.integer(depth - 1)}]", lambda: f"({li()} + {li()})",
                         lambda: f"{li()}[{self.r.randint(-2, 2)}:]", lambda: f"({li()}|reverse|list)",
                         lambda: f"({li()}|unique|list)", lambda: f"(({self.text(depth - 1)})|list)")()

    def truth(self, depth):
        if depth <= 0:
            return self.pick('true', 'false', 'add_generation_prompt', 'nothing is defined')
        t = lambda: self.truth(depth - 1)
        return self.pick(
            lambda: f"({t()} and {t()})", lambda: f"({t()} or {t()})", lambda: f"(not {t()})",
            lambda: f"({self.integer(depth - 1)} {self.pick('<', '>=', '==', '!=')} {self.integer(depth - 1)})",
            lambda: f"({self.text(depth - 1)} in {self.text(depth - 1)})", lambda: f"({self.text(depth - 1)} == {self.text(depth - 1)})",
            lambda: f"({self.integer(depth - 1)} is {self.pick('odd', 'even', 'number', 'string')})",
            lambda: f"({self.integer(depth - 1)} {self.pick('in', 'not in')} {self.list(depth - 1)})")()

    def body(self, depth):
        out = ''
        for _ in range(self.r.randint(1, 3)):
            gap = lambda: self.pick('', ' ', '\n', '\n  ', ' z ')
            begin, end = self.pick('{%', '{%-', '{%'), self.pick('%}', '-%}', '%}')
            if depth <= 0 or self.r.random() < 0.5:
                out += gap() + self.pick('{{', '{{-') + ' ' + self.pick(self.text, self.integer, self.list, self.truth)(2) + ' ' + self.pick('}}', '-}}') + gap()
            elif self.r.random() < 0.4:
                out += f"{gap()}{begin} for role in {self.list(1)} {end}{self.body(depth - 1)}{begin} endfor {end}{gap()}"
            elif self.r.random() < 0.5:
                out += f"{gap()}{begin} if {self.truth(1)} {end}{self.body(depth - 1)}{begin} else {end}{self.body(depth - 1)}{begin} endif {end}{gap()}"
            else:
                out += f"{gap()}{begin} set role = {self.text(1)} {end}{gap()}"
        return out


def run(source, chat, answers):
    given = {'messages': [{'role': role, 'content': content} for role, content in chat], 'add_generation_prompt': answers,
             'bos_token': '<s>', 'eos_token': '</s>', 'tools': None, 'documents': None}
    row = {'chat': CHATS.index(chat), 'answers': answers}
    try:
        row['text'] = ENVIRONMENT.from_string(source).render(**given)
    except (jinja2.exceptions.TemplateError, TypeError, ValueError, ZeroDivisionError) as error:
        row['error'] = type(error).__name__
    return row


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 80
    every = [(chat, answers) for chat in CHATS for answers in (True, False)]
    rows = [(name, source, every) for name, source in FORMATS.items()]
    rows += [(f'small {i}', source, [(CHATS[1], True), (CHATS[4], True)]) for i, source in enumerate(SMALL)]
    for seed in range(count):
        rows.append((f'drawn {seed}', "{% set role = 'r' %}" + Drawn(seed).body(3), [(CHATS[seed % 3], seed % 2 == 0)]))
    rows = [{'name': name, 'template': source, 'runs': [run(source, *how) for how in runs]} for name, source, runs in rows]
    rows = [row for row in rows if len(row['runs'][0].get('text', '')) < 1000]
    path = pathlib.Path(__file__).with_name('chat_templates.json')
    lines = ',\n'.join(json.dumps(row, ensure_ascii=False) for row in rows)
    path.write_text(f'{{"chats": {json.dumps(CHATS, ensure_ascii=False)},\n"templates": [\n{lines}\n]}}\n', encoding='utf-8')
    print(sum(len(row['runs']) for row in rows), 'runs,', sum('error' in one for row in rows for one in row['runs']), 'of them errors')


main()
