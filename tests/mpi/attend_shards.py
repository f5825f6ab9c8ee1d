#!/usr/bin/env python3
"""`mpirun -n N fovea attend IN --out OUT --shards` writes the same bytes for N of 1 to 4, and the numbers of one process;
so do `fovea gradients` and `fovea map`.

    attend_shards.py MPIEXEC NUMPROC_FLAG FOVEA TEST_PROGRAM [RANKS ...]     on other numbers of ranks than those
"""
import json
import math
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import time

MPIEXEC, FLAG, FOVEA, PROGRAM = sys.argv[1:5]
RANKS = [int(word) for word in sys.argv[5:]] or [1, 2, 3, 4]
GRADIENTS = [
    ('q,k,v,do', ['--causal', 'bottom-right']),
    ('q,k,v,do,dlse,sinks,alibi,mask', ['--q-offset', '8', '--dropout', '0.25', '--seed', '9', '--softcap', '5']),
    ('q,k,v,do,kv_lengths', ['--layout', 'blhd', '--q-offset', '8', '--window', '20,0']),
    ('q,k,v,do,bias,alibi,sinks,kv_lengths', ['--gradients', 'dbias,dsinks', '--causal', 'bottom-right']),
    ('q,k,v,do,each_bias,alibi,kv_lengths', ['--gradients', 'dbias,dalibi', '--causal', 'bottom-right']),
]
CALLS = [
    ('q,k,v', []),
    ('q,k,v', ['--causal', 'bottom-right', '--outputs', 'o,lse']),
    ('q,k,v,alibi,sinks', ['--causal', 'top-left', '--window', '20,0', '--softcap', '5', '--outputs', 'lse,o']),
    ('q,k,v,mask,kv_lengths', ['--dropout', '0.25', '--seed', '9']),
    ('q,k,v,bias', ['--layout', 'blhd', '--scale', '0.5']),
    ('one,k,v', ['--causal', 'bottom-right', '--outputs', 'o,lse']),
]
MAPS = [
    ('q,k,v', ['--causal', 'bottom-right']),
    ('q,k,v,mask,sinks', ['--rows', '3:44', '--keys', '5:50', '--size', '11x7', '--head', '3', '--entry', '1']),
    ('q,k,v,alibi', ['--rows', '30:45', '--size', '53x1', '--q-offset', '8', '--dropout', '0.25', '--reducer', 'max']),
]
SHAPE = {'batch': 2, 'heads': 4, 'kv': 2, 'queries': 45, 'keys': 53, 'dim': 7, 'value': 5}
KV_LENGTHS = (31, SHAPE['keys'])
STORED_AS = {'one': 'q', 'each_bias': 'bias'}
# A gradient of slopes is a sum over all pairs of terms that are far larger than it: roundings of their whole size.
SLOPE_ROUNDINGS = 2


def numbers(name, count):
    """Anything between -1 and 1 that is the same everywhere."""
    return [math.sin(12.9898 * (n + 1) + len(name) * 78.233 + ord(name[0])) for n in range(count)]


def tensor(name, rows_first):
    s = SHAPE
    queries = 1 if name == 'one' else s['queries']
    shapes = {'q': (s['heads'], queries, s['dim']), 'one': (s['heads'], queries, s['dim']),
              'do': (s['heads'], queries, s['value']), 'k': (s['kv'], s['keys'], s['dim']), 'v': (s['kv'], s['keys'], s['value'])}
    if name in shapes:
        heads, rows, columns = shapes[name]
        shape = [s['batch'], rows, heads, columns] if rows_first else [s['batch'], heads, rows, columns]
        return 'F32', shape, struct.pack(f'<{math.prod(shape)}f', *numbers(name, math.prod(shape)))
    if name == 'dlse':
        shape = [s['batch'], s['heads'], queries]
        return 'F32', shape, struct.pack(f'<{math.prod(shape)}f', *numbers(name, math.prod(shape)))
    if name in ('alibi', 'sinks'):
        return 'F32', [s['heads']], struct.pack(f'<{s["heads"]}f', *numbers(name, s['heads']))
    if name == 'kv_lengths':
        return 'I32', [s['batch']], struct.pack('<2i', *KV_LENGTHS)
    shape = [s['queries'], s['keys']]
    if name == 'each_bias':
        shape = [s['batch'], s['heads'], *shape]
    if name == 'mask':
        return 'U8', shape, bytes(x > -0.7 for x in numbers(name, math.prod(shape)))
    return 'F32', shape, struct.pack(f'<{math.prod(shape)}f', *numbers(name, math.prod(shape)))


def write(path, names, rows_first):
    header, data = {}, b''
    for name in names:
        kind, shape, body = tensor(name, rows_first)
        header[STORED_AS.get(name, name)] = {'dtype': kind, 'shape': shape,
                                             'data_offsets': [len(data), len(data) + len(body)]}
        data += body
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack('<Q', len(text)) + text + data)


def read(path):
    body = path.read_bytes()
    size = struct.unpack('<Q', body[:8])[0]
    header = json.loads(body[8:8 + size])
    result = {}
    for name, entry in header.items():
        if name == '__metadata__':
            continue
        begin, end = entry['data_offsets']
        result[name] = struct.unpack(f'<{(end - begin) // 4}f', body[8 + size + begin:8 + size + end])
    return result


def run(ranks, words, name='attend'):
    command = ([MPIEXEC, FLAG, str(ranks)] if ranks else []) + [FOVEA, name, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def check(what, good):
    if not good:
        print(f'failed: {what}')
        sys.exit(1)


def allowed_of(name, values, gradients):
    """Returns the largest difference for each element of a tensor. If each pair has its own bias, dbias has the
    pairs' terms, and a slope's gradient is their sum, weighted by the distances of bottom-right rows."""
    if name != 'dalibi':
        return [1e-5 * (1 + abs(x)) for x in values]
    s, terms = SHAPE, iter(gradients['dbias'])
    sizes = [0.0] * s['heads']
    for length in KV_LENGTHS:
        for head in range(s['heads']):
            for row in range(s['queries']):
                sizes[head] += sum(abs(next(terms) * (key - row - length + s['queries'])) for key in range(s['keys']))
    return [SLOPE_ROUNDINGS * 2**-24 * size for size in sizes]


def children_of(pid):
    listed = pathlib.Path(f'/proc/{pid}/task/{pid}/children').read_text()
    return [int(child) for child in listed.split()]


def write_long(path, length):
    """q, k and v of four heads, and the size of each in bytes."""
    size = 4 * length * 64 * 4
    header = {name: {'dtype': 'F32', 'shape': [4, length, 64], 'data_offsets': [n * size, (n + 1) * size]}
              for n, name in enumerate('qkv')}
    text = json.dumps(header).encode()
    text += b' ' * (-len(text) % 8)
    with open(path, 'wb') as file:
        file.write(struct.pack('<Q', len(text)) + text)
        for _ in range(3 * size // 65536):
            file.write(struct.pack('<f', 0.25) * 16384)
    return size


MEMORY_OF_RANKS = """import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
sys.exit(done.returncode)"""


def a_rank_holds_its_part(folder):
    """With a long context each of four ranks holds only its own rows, rank 0 also the output, and none has all of q,
    k, v."""
    source, out = folder / 'large.safetensors', folder / 'large.out'
    size = write_long(source, 32768)
    command = [MPIEXEC, FLAG, '4', FOVEA, 'attend', str(source), '--out', str(out), '--backend', 'cpu', '--threads', '1',
               '--shards', '--window', '63,0']
    job = subprocess.run([sys.executable, '-c', MEMORY_OF_RANKS, *command], capture_output=True, text=True, timeout=120)
    check(f'a long window: {job.stderr}', job.returncode == 0)
    most, rest = int(job.stdout), 48 * 2**20
    # A file's pages are mapped in large pieces while rows are taken from it; afterwards no rank has any of them.
    check(f'a rank held {most} bytes, more than q, k and v or its parts and the output', most < 3 * size + rest)


def a_killed_rank_ends_all(folder):
    """A rank that is killed while it computes: the job ends with an error, and rank 0 writes nothing."""
    source, out = folder / 'long.safetensors', folder / 'long.out'
    write_long(source, 40960)
    job = subprocess.Popen([MPIEXEC, FLAG, '3', FOVEA, 'attend', str(source), '--out', str(out), '--backend', 'cpu',
                            '--threads', '1', '--shards'], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60

    def computes(pid):  # more than it takes to start and to read its rows
        fields = pathlib.Path(f'/proc/{pid}/stat').read_text().rsplit(')', 1)[1].split()
        return int(fields[11]) > 40  # hundredths of a second of CPU time, of some five seconds
    try:
        ranks = []
        while len(ranks) < 3 or not computes(ranks[2]):
            check('the ranks did not start', job.poll() is None and time.monotonic() < deadline)
            time.sleep(0.05)
            found = [pid for launcher in [job.pid, *children_of(job.pid)] for pid in children_of(launcher)]
            ranks = [pid for pid in found if 'attend' in pathlib.Path(f'/proc/{pid}/cmdline').read_text()]
        os.kill(ranks[2], signal.SIGKILL)
        check('the job ended as if all were well', job.wait(timeout=30) != 0)
    finally:
        job.kill()
    check('an output stands although the job failed', not out.exists() and not list(folder.glob('long.out*')))
    deadline = time.monotonic() + 30
    while any(pathlib.Path(f'/proc/{pid}').exists() for pid in ranks):
        check('a rank goes on', time.monotonic() < deadline)
        time.sleep(0.05)


def a_rank_killed_in_gradients_ends_all():
    job = subprocess.run([MPIEXEC, FLAG, '3', PROGRAM, '--killed'], capture_output=True, text=True, timeout=120)
    check(f'the job went on without its rank: {job.stdout}{job.stderr}', job.returncode != 0 and 'went on' not in job.stdout)
    check(f'the rank was not killed in its gradients: {job.stdout}{job.stderr}', 'killed in its gradients' in job.stdout)


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    for name, names, options in [('attend', *c) for c in CALLS] + [('gradients', *c) for c in GRADIENTS]:
        source, out = folder / 'in.safetensors', folder / 'out.safetensors'
        write(source, names.split(','), 'blhd' in options)
        alone = run(0, [source, '--out', out, '--backend', 'cpu', *options], name)
        check(f'{options}: {alone.stderr}', alone.returncode == 0)
        expected = read(out)
        first = None
        for ranks in RANKS:
            out.unlink()
            done = run(ranks, [source, '--out', out, '--backend', 'cpu', '--shards', '--chunk', '8', *options], name)
            check(f'{options} on {ranks} ranks: {done.stderr}', done.returncode == 0)
            check(f'{ranks} ranks say what ran once', done.stdout.count('wrote: ') == 1)
            first = first or out.read_bytes()
            check(f'{options}: {ranks} ranks give other bytes than {RANKS[0]}', out.read_bytes() == first)
        got = read(out)
        check(f'{options}: other tensors', got.keys() == expected.keys())
        for tensor_name, values in expected.items():
            for a, b, allowed in zip(values, got[tensor_name], allowed_of(tensor_name, values, expected)):
                check(f'{options}: {tensor_name} {b}, expected {a}', a == b or abs(a - b) <= allowed)
    for names, options in MAPS:
        source, csv = folder / 'in.safetensors', folder / 'map.csv'
        write(source, names.split(','), False)
        alone = run(0, [source, '--csv', csv, '--backend', 'cpu', *options], 'map')
        check(f'{options}: {alone.stderr}', alone.returncode == 0)
        expected = [[float(x) for x in line.split(',')] for line in csv.read_text().split()]
        first = None
        for ranks in RANKS:
            csv.unlink()
            done = run(ranks, [source, '--csv', csv, '--backend', 'cpu', '--shards', '--chunk', '8', *options], 'map')
            check(f'map {options} on {ranks} ranks: {done.stderr}', done.returncode == 0)
            check(f'{ranks} ranks say what ran once', done.stdout.count('wrote: ') == 1)
            first = first or csv.read_bytes()
            check(f'map {options}: {ranks} ranks give other bytes than {RANKS[0]}', csv.read_bytes() == first)
        got = [[float(x) for x in line.split(',')] for line in csv.read_text().split()]
        check(f'map {options}: other pixels', [len(row) for row in got] == [len(row) for row in expected] and
              all(abs(a - b) <= 1e-5 * (1 + abs(a)) for x, y in zip(expected, got) for a, b in zip(x, y)))
    write(folder / 'in.safetensors', ['q', 'k', 'v', 'do', 'sinks'], False)
    for name, words, text in (('attend', ['--shards', '--outputs', 'weights'], 'outputs'),
                              ('attend', ['--shards', '--chunk', '0'], 'chunk'),
                              ('attend', ['--chunk', '8'], '--chunk'),
                              ('map', ['--shards', '--head', '9'], '--head'),
                              ('gradients', ['--shards', '--gradients', 'dalibi'], 'gradients'),
                              ('gradients', ['--chunk', '8'], '--chunk')):
        refused = run(3 if '--shards' in words else 0, [folder / 'in.safetensors', '--csv' if name == 'map' else '--out',
                                                        folder / 'no.file', *words], name)
        check(f'{words} was accepted', refused.returncode != 0 and not (folder / 'no.file').exists())
        said = [line for line in refused.stderr.splitlines() if line.startswith('fovea: error')]
        check(f'{words}: {refused.stderr}', len(said) == 1 and text in said[0])
    a_rank_holds_its_part(folder)
    a_killed_rank_ends_all(folder)
    a_rank_killed_in_gradients_ends_all()
print(f'the same bytes on {RANKS} ranks')
