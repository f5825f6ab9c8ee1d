#!/usr/bin/env python3
"""Plants small bugs, one at a time, in a copy of the sources, and sees whether the tests notice.

    mutants.py [NAME...] [--area AREA] [--jobs N] [--list] [--check]

NAME is a mutant or a part of its name. Each of them (tests/mutants/AREA.toml) replaces one piece of text; the suites that
should see it (tests/mutants/suites.toml) run in their order until one fails. A suite fails too where it takes ten times
as long as it may. Copies and builds stay in build/mutants, so that a second run builds little; the working tree is never
touched. --check only sees whether every pattern still stands exactly once in its file.

At the end a table, and last `K of N killed, E equivalent`: N counts those that can be seen at all.
"""
import argparse
import concurrent.futures
import os
import pathlib
import queue
import shutil
import subprocess
import sys
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
LISTS = ROOT / 'tests' / 'mutants'
WORK = ROOT / 'build' / 'mutants'
FIELDS = {'name', 'file', 'find', 'replace', 'why', 'suites', 'equivalent'}


def read_lists(root=ROOT):
    """The suites by name, and all mutants, each with its area. Faults of the lists end the program."""
    folder = root / 'tests' / 'mutants'
    suites = tomllib.loads((folder / 'suites.toml').read_text(encoding='utf-8'))
    mutants, faults, names = [], [], set()
    for path in sorted(folder.glob('*.toml')):
        if path.name == 'suites.toml':
            continue
        area = tomllib.loads(path.read_text(encoding='utf-8'))
        for mutant in area['mutant']:
            mutant['area'] = path.stem
            mutant.setdefault('suites', area.get('suites', []))
            mutant.setdefault('file', area.get('file', ''))
            mutants.append(mutant)
            name = mutant.get('name', '?')
            where = f'{path.name}: {name}'
            if name in names:
                faults.append(f'{where}: the name appears twice')
            names.add(name)
            if extra := set(mutant) - FIELDS - {'area'}:
                faults.append(f'{where}: unknown {", ".join(sorted(extra))}')
            for field in ('name', 'find', 'why'):
                if not mutant.get(field):
                    faults.append(f'{where}: {field} is missing')
            if 'replace' not in mutant or mutant['replace'] == mutant.get('find'):
                faults.append(f'{where}: nothing is replaced')
            for suite in mutant['suites']:
                if suite not in suites:
                    faults.append(f'{where}: there is no suite {suite}')
            if not mutant['suites'] and 'equivalent' not in mutant:
                faults.append(f'{where}: no suite is named')
            source = root / mutant['file']
            count = source.read_text(encoding='utf-8').count(mutant.get('find', '')) if source.is_file() else 0
            if count != 1:
                faults.append(f'{where}: the pattern stands {count} times in {mutant["file"]}, not once')
    return suites, mutants, faults


def sources():
    output = subprocess.run(['git', '-C', str(ROOT), 'ls-files', '-co', '--exclude-standard', '-z'], check=True,
                            capture_output=True, text=True).stdout
    return [name for name in output.split('\0') if name and (ROOT / name).is_file()]


class Lane:
    """A copy of the sources with a build of its own."""

    def __init__(self, number, jobs):
        self.folder, self.jobs = WORK / str(number), jobs
        self.source, self.build = self.folder / 'source', self.folder / 'build'
        self.built = set()

    def run(self, command, seconds, cwd=None):
        """(exit status or None where time ran out, output)"""
        environment = dict(os.environ, CCACHE_BASEDIR=str(self.folder), CCACHE_NOHASHDIR='1', CI='')
        process = subprocess.Popen(command, cwd=cwd or self.build, env=environment, text=True, errors='replace',
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            output, _ = process.communicate(timeout=seconds)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            return None, process.communicate()[0]

    def copy(self):
        """Brings the copy up to date; files that did not change keep their times."""
        wanted = set(sources())
        for name in wanted:
            text, to = (ROOT / name).read_bytes(), self.source / name
            if not to.is_file() or to.read_bytes() != text:
                to.parent.mkdir(parents=True, exist_ok=True)
                to.write_bytes(text)
                shutil.copymode(ROOT / name, to)
        for path in self.source.rglob('*'):
            name = str(path.relative_to(self.source))
            if path.is_file() and name not in wanted and not name.startswith(('web/node_modules', 'build/')):
                path.unlink()
        # The page's packages and its built engine are used as they are.
        for name in ('web/node_modules', 'build/web'):
            if (ROOT / name).is_dir() and not (self.source / name).exists():
                (self.source / name).parent.mkdir(parents=True, exist_ok=True)
                (self.source / name).symlink_to(ROOT / name)

    def configure(self):
        self.build.mkdir(parents=True, exist_ok=True)
        tools = os.environ.get('FOVEA_CACHE', str(pathlib.Path.home() / '.cache' / 'fovea'))
        # Tests are compiled quickly rather than well. One instruction set beside the widest and the scalar one is enough.
        status, output = self.run(['cmake', '-S', str(self.source), '-B', str(self.build), '-G', 'Ninja',
                                   '-DCMAKE_BUILD_TYPE=Release', '-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG',
                                   f'-DFOVEA_TOOLS={tools}'], 600, self.folder)
        if status != 0:
            sys.exit(f'cannot configure {self.build}:\n{output[-3000:]}')

    def make(self, targets):
        targets = [target for target in targets if target]
        if not targets:
            return True, ''
        status, output = self.run(['cmake', '--build', str(self.build), '--parallel', str(self.jobs), '--target',
                                   *targets], 3600)
        return status == 0, output

    def command(self, suite):
        place = {'build': self.build, 'source': self.source}
        return [word.format(**place) for word in suite['command'].split()]


def try_mutant(lane, suites, mutant):
    """(outcome, seconds): the suite that killed it, or why it did not count."""
    begin = time.monotonic()
    path = lane.source / mutant['file']
    text = path.read_text(encoding='utf-8')
    path.write_text(text.replace(mutant['find'], mutant['replace']), encoding='utf-8')
    try:
        for name in mutant['suites']:
            suite = suites[name]
            made, output = lane.make([suite.get('target', '')])
            if not made:
                lines = [line for line in output.splitlines() if 'error' in line or 'FAILED' in line]
                return 'does not build: ' + (lines[0] if lines else output[-200:]), time.monotonic() - begin
            status, output = lane.run(lane.command(suite), 10 * suite['seconds'],
                                      lane.source if suite.get('in_source') else None)
            if status != 0:
                first = next((line.strip() for line in output.splitlines() if 'FAILED' in line or 'Failure' in line), '')
                hint = 'time ran out' if status is None else first
                return f'killed by {name}' + (f' ({hint[:90]})' if hint else ''), time.monotonic() - begin
        return 'SURVIVED', time.monotonic() - begin
    finally:
        path.write_text(text, encoding='utf-8')


def run(suites, mutants, lane_count):
    used = [name for name in suites if any(name in mutant['suites'] for mutant in mutants)]
    jobs = max(1, (os.cpu_count() or 1) // lane_count)
    lanes = queue.Queue()
    for number in range(lane_count):
        lane = Lane(number + 1, jobs)
        lane.folder.mkdir(parents=True, exist_ok=True)
        lane.copy()
        lane.configure()
        lanes.put(lane)

    def prepare(lane):
        made, output = lane.make(sorted({suites[name].get('target', '') for name in used} - {''}))
        if not made:
            sys.exit(f'the sources do not build:\n{output[-3000:]}')

    print('building what the tests need', flush=True)
    all_lanes = [lanes.get() for _ in range(lane_count)]
    with concurrent.futures.ThreadPoolExecutor(lane_count) as pool:
        list(pool.map(prepare, all_lanes))
    for name in used:
        begin = time.monotonic()
        lane = all_lanes[0]
        status, output = lane.run(lane.command(suites[name]), 20 * suites[name]['seconds'],
                                  lane.source if suites[name].get('in_source') else None)
        if status != 0:
            sys.exit(f'suite {name} fails without a mutant:\n{output[-3000:]}')
        print(f'suite {name} passes in {time.monotonic() - begin:.0f} s', flush=True)
    for lane in all_lanes:
        lanes.put(lane)

    def one(mutant):
        lane = lanes.get()
        try:
            outcome, seconds = try_mutant(lane, suites, mutant)
        finally:
            lanes.put(lane)
        print(f'{mutant["area"]:9} {mutant["name"]:58} {outcome} ({seconds:.0f} s)', flush=True)
        return mutant, outcome, seconds

    # Neighbours in a file follow each other, so that what a mutant leaves to be built again is little.
    with concurrent.futures.ThreadPoolExecutor(lane_count) as pool:
        return list(pool.map(one, mutants))


def report(results, equivalent):
    print(f'\n{"area":9} {"mutant":58} {"outcome":44} {"s":>4}')
    for mutant, outcome, seconds in results:
        print(f'{mutant["area"]:9} {mutant["name"]:58} {outcome[:44]:44} {seconds:4.0f}')
    for mutant in equivalent:
        print(f'{mutant["area"]:9} {mutant["name"]:58} equivalent: {mutant["equivalent"]}')
    print(f'\n{"area":9} {"killed":>6} {"of":>4}')
    for area in sorted({mutant['area'] for mutant, _, _ in results}):
        mine = [outcome for mutant, outcome, _ in results if mutant['area'] == area]
        print(f'{area:9} {sum(outcome.startswith("killed") for outcome in mine):6} {len(mine):4}')
    killed = sum(outcome.startswith('killed') for _, outcome, _ in results)
    broken = [mutant['name'] for mutant, outcome, _ in results if outcome.startswith('does not build')]
    for name in broken:
        print(f'error: {name} does not build, so that it says nothing about the tests')
    print(f'{killed} of {len(results)} killed, {len(equivalent)} equivalent')
    return 1 if broken else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('names', nargs='*', metavar='NAME')
    parser.add_argument('--area')
    parser.add_argument('--jobs', type=int, default=os.cpu_count() or 1, help='mutants at a time (default: the cores)')
    parser.add_argument('--list', action='store_true', help='names and what they are about, nothing is run')
    parser.add_argument('--check', action='store_true', help='whether every pattern stands once in its file')
    asked = parser.parse_args()
    suites, mutants, faults = read_lists()
    if faults:
        print('\n'.join(faults))
        return 1
    if asked.check:
        print(f'{len(mutants)} mutants, every pattern stands once in its file')
        return 0
    if asked.area and asked.area not in {mutant['area'] for mutant in mutants}:
        print(f'no area is called {asked.area}; there are: {" ".join(sorted({m["area"] for m in mutants}))}')
        return 2
    chosen = [mutant for mutant in mutants if (not asked.area or mutant['area'] == asked.area) and
              (not asked.names or any(name in mutant['name'] for name in asked.names))]
    if not chosen:
        print(f'no mutant is called {" or ".join(asked.names)}')
        return 2
    if asked.list:
        for mutant in chosen:
            print(f'{mutant["area"]:9} {mutant["name"]:58} {mutant["file"]}\n{"":10}{mutant["why"]}')
        return 0
    equivalent = [mutant for mutant in chosen if 'equivalent' in mutant]
    chosen = [mutant for mutant in chosen if 'equivalent' not in mutant]
    results = run(suites, chosen, max(1, min(asked.jobs, len(chosen)))) if chosen else []
    return report(results, equivalent)


if __name__ == '__main__':
    sys.exit(main())
