#!/usr/bin/env python3
"""Finds accesses of shared memory that no barrier keeps apart, in optimized SPIR-V modules.

    barriers.py TABLE FOLDER               exits 1 where a module of the folder has more such pairs than the table allows
    barriers.py TABLE --update FOLDER      writes the table anew; reasons of lines that stay are kept
    barriers.py TABLE --self-test FOLDER   takes every barrier away, one at a time: each loss must be seen

A software driver runs the threads of a workgroup in step or one after the other, so that a lost barrier shows there only
by luck. Here a write and another access of one shared variable are a pair if a way through the module leads from the
first to the second without a barrier, and if different threads may meet in one element: an index that is one and the
same function of the thread's number in both keeps them apart. Pairs that are right for another reason (a condition lets
one thread in, a reduction reads what no other thread writes) are in the table, counted, with that reason. So does
a barrier that could go: "barrier N may go".
"""
import collections
import pathlib
import re
import struct
import sys

ENTRY, CONSTANT, FUNCTION, FUNCTION_END, CALL, VARIABLE, LOAD, STORE = 15, 43, 54, 56, 57, 59, 61, 62
ACCESSES, DECORATE, PHI, LABEL, BRANCH, BRANCH_IF, SWITCH, BARRIER = {65, 66}, 71, 245, 248, 249, 250, 251, 224
MATRIX_LOADS, MATRIX_STORES = {4457, 5366}, {4458, 5367}
ATOMIC_STORE, ATOMICS = 228, set(range(227, 243)) | {6035}
NOT_EQUAL, MERGES = 171, {246, 247}
WORKGROUP, BUILTIN = 4, 11
BUILTINS = {27: 'thread3', 29: 'thread', 41: 'lane'}
OPERATIONS = {124: 'bits', 128: '+', 130: '-', 132: '*', 134: '/', 137: '%', 169: '?', 194: '>>', 195: '>>', 196: '<<',
              197: '|', 198: '^', 199: '&'}
NO_RESULT = {ENTRY, STORE, DECORATE, BRANCH, BRANCH_IF, SWITCH, BARRIER} | MERGES | MATRIX_STORES | {ATOMIC_STORE}

Instruction = collections.namedtuple('Instruction', 'op words')
Access = collections.namedtuple('Access', 'variable indices kind')


def instructions(data):
    words = struct.unpack(f'<{len(data) // 4}I', data)
    if not words or words[0] != 0x07230203:
        raise ValueError('not a SPIR-V module')
    at = 5
    while at < len(words):
        length = words[at] >> 16
        yield Instruction(words[at] & 0xffff, words[at + 1:at + length])
        at += length


class Module:
    """The entry point, into which the optimizer has inlined everything that touches shared memory."""

    def __init__(self, data, without_barrier=-1):
        self.defined, self.builtins, self.shared, self.blocks, self.barriers = {}, {}, [], {}, 0
        entry = function = block = None
        for i in instructions(data):
            if i.op == ENTRY:
                entry = i.words[1]
            elif i.op == DECORATE and i.words[1] == BUILTIN:
                self.builtins[i.words[0]] = i.words[2]
            elif i.op == FUNCTION:
                function = i.words[1]
            elif i.op == VARIABLE and i.words[2] == WORKGROUP:
                self.shared.append(i.words[1])
            if len(i.words) >= 2 and i.op not in NO_RESULT:
                self.defined.setdefault(i.words[1], i)
            if function != entry or function is None:
                continue
            if i.op == FUNCTION_END:
                function = block = None
            elif i.op == LABEL:
                block = self.blocks.setdefault(i.words[0], [])
            elif block is not None:
                if i.op == BARRIER:
                    self.barriers += 1
                    if self.barriers - 1 == without_barrier:
                        continue
                block.append(i)
        self.events = {name: list(self.events_of(body)) for name, body in self.blocks.items()}

    def text(self, value, depth=0):
        """An index as a formula. What a loop or memory decides is `~`."""
        i = self.defined.get(value)
        if i is None or depth > 8:
            return '~'
        if i.op == CONSTANT:
            return str(i.words[2])
        if i.op in (48, 49, 50, 52):
            return f'spec{value}'
        if i.op == LOAD:
            return BUILTINS.get(self.builtins.get(i.words[2]), '~')
        if i.op in OPERATIONS:
            return '(' + f' {OPERATIONS[i.op]} '.join(self.text(word, depth + 1) for word in i.words[2:]) + ')'
        return '~'

    def access_of(self, pointer, kind):
        indices = []
        i = self.defined.get(pointer)
        while i is not None and i.op in ACCESSES:
            indices = [self.text(index) for index in i.words[3:]] + indices
            pointer = i.words[2]
            i = self.defined.get(pointer)
        return Access(self.shared.index(pointer), tuple(indices), kind) if pointer in self.shared else None

    def events_of(self, body):
        """Accesses in their order, None for a barrier."""
        for i in body:
            found = None
            if i.op == BARRIER:
                yield None
            elif i.op == LOAD:
                found = self.access_of(i.words[2], 'read')
            elif i.op == STORE:
                found = self.access_of(i.words[0], 'write')
            elif i.op in MATRIX_LOADS or i.op in MATRIX_STORES:
                found = self.access_of(i.words[2] if i.op in MATRIX_LOADS else i.words[0],
                                       'read' if i.op in MATRIX_LOADS else 'write')
                found = found and found._replace(indices=('matrix',))
            elif i.op in ATOMICS:
                found = self.access_of(i.words[0 if i.op == ATOMIC_STORE else 2], 'atomic')
            elif i.op == CALL:
                for argument in i.words[3:]:
                    if passed := self.access_of(argument, 'write'):
                        yield passed
            if found:
                yield found

    def starts_with(self, phi, value):
        """True if `value` is the initial value of a loop's variable."""
        i = self.defined.get(phi)
        return i is not None and i.op == PHI and value in i.words[2::2]

    def next_blocks(self, name):
        last = self.blocks[name][-1]
        if last.op == BRANCH:
            return [last.words[0]]
        if last.op == SWITCH:
            return [last.words[1], *last.words[3::2]]
        if last.op != BRANCH_IF:
            return []
        # `if (n != first) barrier();` in a loop over n from `first` on: between two rounds there always is one.
        condition, then, other = self.defined.get(last.words[0]), last.words[1], last.words[2]
        if condition is not None and condition.op == NOT_EQUAL and self.events.get(then) == [None]:
            a, b = condition.words[2:4]
            if self.starts_with(a, b) or self.starts_with(b, a):
                return [then]
        return [then, other]

    def reached(self, name, begin):
        """The accesses that may follow without a barrier."""
        seen, todo = set(), [(name, begin)]
        while todo:
            at, start = todo.pop()
            for event in self.events[at][start:]:
                if event is None:
                    break
                yield event
            else:
                fresh = [following for following in self.next_blocks(at) if following not in seen]
                seen.update(fresh)
                todo.extend((following, 0) for following in fresh)

    def pairs(self):
        """{(variable, "write then read"): the pairs of indices that different threads may meet in}"""
        found = collections.defaultdict(set)
        for name, events in self.events.items():
            for n, first in enumerate(events):
                if first is None:
                    continue
                for second in self.reached(name, n + 1):
                    if second.variable == first.variable and may_meet(first, second):
                        found[first.variable, f'{first.kind} then {second.kind}'].add((first.indices, second.indices))
        return found


def may_meet(first, second):
    # Two writes in a row are parts of one copy or one clearing, in which every thread has its own elements. A stored
    # matrix is an exception, because its distribution over threads is not defined.
    matrices = (first.indices == ('matrix',)) + (second.indices == ('matrix',))
    if first.kind == second.kind and (first.kind != 'write' or matrices != 1):
        return False
    return not any(a == b and 'thread' in a and '~' not in a for a, b in zip(first.indices, second.indices))


def module_lines(module):
    return {f'shared {variable}: {what}': len(indices) for (variable, what), indices in module.pairs().items()}


def read_table(path):
    """{module: {pair: (count, reason)}}"""
    table, lines = {}, None
    for line in path.read_text(encoding='utf-8').splitlines() if path.exists() else []:
        if not line.strip() or line.startswith('#'):
            continue
        if not line.startswith(' '):
            lines = table.setdefault(line.strip(), {})
            continue
        pair, _, reason = line.strip().partition('  because')
        pair, _, count = pair.rpartition(' x ') if ' x ' in pair else (pair, '', 0)
        lines[pair] = (int(count), reason.strip())
    return table


def check(name, data, table):
    lines, known = module_lines(Module(data)), table.get(name, {})
    for pair, count in sorted(lines.items()):
        allowed = known.get(pair, (0, ''))[0]
        if count > allowed:
            yield f'{name}: {pair} without a barrier in {count} ways; {allowed} are known to be right'
        elif not known[pair][1]:
            yield f'{name}: {pair}: no reason is given'
    for pair in sorted(set(known) - set(lines)):
        if pair.startswith('barrier '):
            continue
        yield f'{name}: {pair} is in the table and no longer in the module'


def self_test(name, data, table):
    whole = module_lines(Module(data))
    for n in range(Module(data).barriers):
        unseen = all(count <= whole.get(pair, 0) for pair, count in module_lines(Module(data, n)).items())
        if unseen != (f'barrier {n} may go' in table.get(name, {})):
            yield f'{name}: barrier {n} could be lost unseen' if unseen else f'{name}: barrier {n} may not go'


HEADER = '''# Accesses of shared memory that follow each other without a barrier and are right all the same, for barriers.py. A line
# is a variable of the module in the order of its declarations, what follows what, and in how many combinations of
# indices; or a barrier, counted from 0, that another one makes needless. After a change of a shader that is meant: read
# what is new there, then
#   tests/shaders/barriers.py tests/shaders/barriers.txt --update build/default/engine/plan/vulkan/shaders
# and give each new line its reason.
'''


def write_table(path, modules, old):
    text, text_of_kept = HEADER, {}
    for name, data in modules:
        lines = module_lines(Module(data))
        for pair, (_, reason) in old.get(name, {}).items():
            if pair.startswith('barrier '):
                kept = f'    {pair}  because {reason}\n'
                text_of_kept.setdefault(name, []).append(kept)
        if not lines and name not in text_of_kept:
            continue
        text += f'\n{name}\n'
        for pair, count in sorted(lines.items()):
            text += f'    {pair} x {count}  because {old.get(name, {}).get(pair, (0, ""))[1]}\n'
        text += ''.join(text_of_kept.get(name, []))
    path.write_text(text, encoding='utf-8')


def main(arguments):
    mode = next((a for a in arguments if a.startswith('--')), '--check')
    paths = [pathlib.Path(a) for a in arguments if not a.startswith('--')]
    if len(paths) != 2 or mode not in ('--check', '--update', '--self-test'):
        print(__doc__)
        return 2
    # A build folder keeps modules that there are no more.
    variants = pathlib.Path(__file__).parents[2] / 'shaders/variants.def'
    names = set(re.findall(r'^FOVEA_SHADER\((\w+),', variants.read_text(encoding='utf-8'), re.M))
    modules = [(path.stem, path.read_bytes()) for path in sorted(paths[1].glob('*.spv')) if path.stem in names]
    if not modules:
        print(f'{paths[1]} holds no modules')
        return 1
    table = read_table(paths[0])
    if mode == '--update':
        write_table(paths[0], modules, table)
        return 0
    faults, barriers = [], 0
    for name, data in modules:
        faults += check(name, data, table) if mode == '--check' else self_test(name, data, table)
        barriers += Module(data).barriers
    print('\n'.join(faults) if faults else f'{len(modules)} modules, {barriers} barriers: '
          + ('every pair is known' if mode == '--check' else 'no loss goes unseen'))
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
