#!/usr/bin/env python3
"""Plants small bugs, one at a time, in a copy of the sources, and sees whether the tests notice.

    mutants.py [NAME...] [--area AREA] [--jobs N] [--resume] [--list] [--check]

NAME is a mutant or a part of its name. Each of them (tests/mutants/AREA.toml) replaces one piece of text; the suites that
should see it (tests/mutants/suites.toml) run in their order until one fails. A suite fails too where it takes five
times the CPU time that it takes without a mutant, and ten seconds more. A copy of the sources is built once, in
build/mutants/base; for a mutant only the files that include it are compiled, to separate objects that are linked
instead, so that mutants run in parallel. Other files than C++ sources are built in the copy, one mutant at a time.
The working tree is never touched.

Every outcome is written to build/mutants/results.json as it comes. --resume goes on from there: a mutant that was killed
is not run again while its file and its entry are what they were; one that survived is, for the tests may be better now.
--check only checks that every pattern occurs exactly once in its file.

At the end a table with each area's CPU time, and last `K of N killed, E equivalent`: N counts those that can be
seen at all.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
LISTS = ROOT / 'tests' / 'mutants'
WORK = ROOT / 'build' / 'mutants'
RESULTS = WORK / 'results.json'
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


def looks_at_the_copy(suite):
    return bool(suite.get('in_source') or suite.get('in_build'))


def in_place(mutant, suites):
    """True if it needs its own build: it is not a C++ source, or a suite inspects the copy itself."""
    return not mutant['file'].endswith(('.cpp', '.hpp')) or any(looks_at_the_copy(suites[name]) for name in mutant['suites'])


class Base:
    """A copy of the sources and one build of them, without a mutant, from which every mutant's programs are made."""

    def __init__(self, jobs):
        self.folder, self.jobs = WORK / 'base', jobs
        self.source, self.build = self.folder / 'source', self.folder / 'build'
        self.lock = threading.Lock()  # protects the copy and the build
        self.objects = {}  # by target: command by object file
        self.links = {}  # by target: the command that links it
        self.users = {}  # object files by the source or header that they are made of

    def copy(self):
        """Brings the copy up to date; files that did not change keep their times."""
        wanted = set(sources())
        self.source.mkdir(parents=True, exist_ok=True)
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

    def configure(self, work):
        self.build.mkdir(parents=True, exist_ok=True)
        tools = os.environ.get('FOVEA_CACHE', str(pathlib.Path.home() / '.cache' / 'fovea'))
        # Compiled quickly, with little optimization. Only ctest lists tests, and it never runs here: a program that
        # is linked again need not be asked for them.
        status, output = work.run(['cmake', '-S', str(self.source), '-B', str(self.build), '-G', 'Ninja',
                                   '-DCMAKE_BUILD_TYPE=Release', '-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG',
                                   '-DCMAKE_GTEST_DISCOVER_TESTS_DISCOVERY_MODE=PRE_TEST', f'-DFOVEA_TOOLS={tools}'],
                                  600, self.folder)
        if status != 0:
            sys.exit(f'cannot configure {self.build}:\n{output[-3000:]}')

    def make(self, work, targets, jobs):
        return work.run(['cmake', '--build', str(self.build), '--parallel', str(jobs), '--target', *targets], 3600,
                        self.build)

    def ninja(self, *arguments):
        return subprocess.run(['ninja', '-C', str(self.build), *arguments], check=True, capture_output=True,
                              text=True).stdout.splitlines()

    def linked(self, target):
        """Returns the object files that the linker takes, of an archive only those that are used: another of its
        objects, linked in addition, might need symbols that the program does not have."""
        command = self.links[target].split(' && ')
        if len(command) < 2:  # a library: all of them
            return set(self.objects[target])
        traced = subprocess.run(['sh', '-c', re.sub(r' -o bin/\S+', ' -o /dev/null -Wl,-t,-t', command[1])], check=True,
                                cwd=self.build, capture_output=True, text=True).stdout
        members = {(os.path.dirname(archive), member) for archive, member in re.findall(r'\((\S+)\.a\)(\S+)', traced)}

        def taken(name):
            folder = name.split('CMakeFiles/')[0].rstrip('/')
            return f' {name} ' in command[1] or (folder, os.path.basename(name)) in members

        return {name for name in self.objects[target] if taken(name)}

    def learn(self, targets):
        """How objects and programs are made, and of what."""
        for target in targets:
            commands = [line for line in self.ninja('-t', 'commands', target) if line.startswith(('/', ': &&'))]
            self.links[target] = next((line for line in reversed(commands) if ' -o bin/' in line), '')  # none: a library
            found = (re.search(r' -o (\S+\.o) ', line) for line in commands)
            self.objects[target] = {match[1]: line for match, line in zip(found, commands) if match}
            taken = self.linked(target)
            self.objects[target] = {name: line for name, line in self.objects[target].items() if name in taken}
        item = ''
        for line in self.ninja('-t', 'deps'):
            if not line.startswith(' '):
                item = line.split(':')[0]
            elif line.strip():
                path = os.path.normpath(os.path.join(self.build, line.strip()))
                if path.startswith(str(self.source) + os.sep):
                    self.users.setdefault(os.path.relpath(path, self.source), set()).add(item)


class Work:
    """One mutant, or none: its programs, and the CPU time of everything that it ran."""

    def __init__(self, base, suites, mutant=None):
        self.base, self.suites, self.mutant, self.seconds = base, suites, mutant, 0.0
        self.folder = WORK / 'mutants' / mutant['name'] if mutant else base.folder
        self.bin = self.folder / 'bin' if mutant else base.build / 'bin'
        self.compiled = {}  # object file of the base: the mutant's

    def run(self, command, limit, cwd=None):
        """(exit status or None where time ran out, output)

        `limit` is in CPU seconds of each process, so that a busy machine kills no mutant; what waits for
        ever ends after as many minutes as these are seconds, half an hour at most.
        """
        # A separate folder for the files of tests: those that run in parallel use the same names.
        own = self.folder / 'written'
        own.mkdir(parents=True, exist_ok=True)
        environment = dict(os.environ, CCACHE_BASEDIR=str(self.base.folder), CCACHE_NOHASHDIR='1', CI='',
                           GTEST_FAIL_FAST='1', GTEST_BRIEF='1', TMPDIR=str(own), TEST_TMPDIR=str(own))
        with tempfile.TemporaryFile() as text:
            process = subprocess.Popen(command, cwd=cwd or self.base.build, env=environment, stdin=subprocess.DEVNULL,
                                       stdout=text, stderr=subprocess.STDOUT, start_new_session=True,
                                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit))))
            end, status = time.monotonic() + min(60 * limit, 1800), None
            while True:
                # Reaped here rather than by Popen, for its CPU time and that of the children it waited for.
                pid, ended, usage = os.wait4(process.pid, os.WNOHANG)
                if pid:
                    process.returncode = os.waitstatus_to_exitcode(ended)
                    status = None if process.returncode in (-signal.SIGXCPU, -signal.SIGKILL) else process.returncode
                    break
                if time.monotonic() > end:
                    os.killpg(process.pid, 9)
                    _, ended, usage = os.wait4(process.pid, 0)
                    process.returncode = os.waitstatus_to_exitcode(ended)
                    break
                time.sleep(0.02)
            self.seconds += usage.ru_utime + usage.ru_stime
            text.seek(0)
            return status, text.read().decode(errors='replace')

    def try_suite(self, name, limit):
        suite = self.suites[name]
        place = {'build': self.base.build, 'bin': self.bin, 'source': self.base.source}
        return self.run([word.format(**place) for word in suite['command'].split()], limit,
                        self.base.source if suite.get('in_source') else self.base.build)

    def link(self, target):
        """Returns an error, or nothing. Compiles the files that include the mutated file, and links them instead of
        the base's."""
        base, name = self.base, self.mutant['file']
        overlay = self.folder / 'source'
        mutated = overlay / name
        if not mutated.is_file():
            mutated.parent.mkdir(parents=True, exist_ok=True)
            text = (base.source / name).read_text(encoding='utf-8')
            mutated.write_text(text.replace(self.mutant['find'], self.mutant['replace']), encoding='utf-8')
        for object_file in sorted(base.users.get(name, set()) & set(base.objects[target])):
            if object_file in self.compiled:
                continue
            command = base.objects[target][object_file]
            source = pathlib.Path(re.search(r' -c (\S+)', command)[1])
            if not source.is_absolute():
                source = base.build / source
            own = os.path.relpath(source, base.source)
            # In the mutated header's folder, so that an include by its bare name finds it, too.
            if not (overlay / own).is_file():
                (overlay / own).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, overlay / own)
            made = self.folder / f'{len(self.compiled)}.o'
            first = ' '.join(f'-I{folder}' for folder in (overlay / 'engine' / 'include', overlay / 'engine', overlay / 'lens' / 'include', overlay / 'lens', overlay / 'tests',
                                                          overlay))
            command = re.sub(r' -o \S+\.o ', f' -iquote {source.parent} -o {made} ', command)
            command = re.sub(r' -M[TF] \S+| -MD', '', re.sub(r' -c \S+', f' -c {overlay / own}', command))
            # The mutant's folders come before all others; the compiler is called without ccache.
            command = re.sub(r'^(?:.*?ccache )?(\S+) ', rf'\1 {first} ', command)
            status, output = self.run(['sh', '-c', command], 600)
            if status != 0:
                return next((line for line in output.splitlines() if 'error' in line), output[-200:])
            self.compiled[object_file] = made
        command, more = base.links[target], []
        for object_file, made in self.compiled.items():
            if f' {object_file} ' in command:
                command = command.replace(f' {object_file} ', f' {made} ')
            elif object_file in base.objects[target]:
                more.append(str(made))  # found before the archive that holds the base's
        self.bin.mkdir(parents=True, exist_ok=True)
        program = re.search(r' -o bin/(\S+)', command)[1]
        command = command.replace(f' -o bin/{program} ', f' -o {self.bin / program} {" ".join(more)} ')
        # The commands after the link (listing tests) belong to the base's program.
        status, output = self.run(['sh', '-c', command.split(' && ')[1]], 600)
        return '' if status == 0 else output[-200:]

    def make_in_place(self):
        """The mutated text is in the copy while everything is built and is removed afterwards. Returns (an error or
        nothing, the result of suites that inspect the copy or the build itself).
        """
        base, found = self.base, ''
        path = base.source / self.mutant['file']
        targets = sorted({self.suites[name].get('target', '') for name in self.mutant['suites']} - {''})
        with base.lock:
            text = path.read_text(encoding='utf-8')
            path.write_text(text.replace(self.mutant['find'], self.mutant['replace']), encoding='utf-8')
            try:
                if targets:
                    status, output = base.make(self, targets, base.jobs)
                    if status != 0:
                        lines = [line for line in output.splitlines() if 'error' in line or 'FAILED' in line]
                        return (lines[0] if lines else output[-200:]), ''
                for name in self.mutant['suites']:
                    if looks_at_the_copy(self.suites[name]):
                        status, _ = self.try_suite(name, 600)
                        found = found or (f'killed by {name}' if status != 0 else '')
                self.bin.mkdir(parents=True, exist_ok=True)
                for target in targets:
                    if not base.links[target]:
                        continue
                    program = re.search(r' -o bin/(\S+)', base.links[target])[1]
                    shutil.copy2(base.build / 'bin' / program, self.bin / program)
            finally:
                path.write_text(text, encoding='utf-8')
        return '', found

    def outcome(self, limits):
        """The suite that killed it, or why it did not count."""
        try:
            if in_place(self.mutant, self.suites):
                error, found = self.make_in_place()
                if error or found:
                    return f'does not build: {error}' if error else found
            for name in self.mutant['suites']:
                suite = self.suites[name]
                if looks_at_the_copy(suite):
                    continue
                if not in_place(self.mutant, self.suites) and (error := self.link(suite['target'])):
                    return f'does not build: {error}'
                status, output = self.try_suite(name, limits[name])
                if status != 0:
                    first = next((line.strip() for line in output.splitlines() if 'FAILED' in line or 'Failure' in line), '')
                    hint = 'time ran out' if status is None else first
                    return f'killed by {name}' + (f' ({hint[:90]})' if hint else '')
            return 'SURVIVED'
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


class Results:
    """The results so far, written to disk after every mutant."""

    def __init__(self, resume):
        self.lock, self.resume = threading.Lock(), resume
        self.known = json.loads(RESULTS.read_text(encoding='utf-8')) if RESULTS.is_file() else {}

    @staticmethod
    def key(mutant):
        text = (ROOT / mutant['file']).read_text(encoding='utf-8') + mutant['find'] + mutant['replace']
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def killed(self, mutant):
        """Returns (outcome, CPU seconds) of a mutant that need not run again, or None."""
        known = self.known.get(mutant['name']) if self.resume else None
        return (known['outcome'], known['seconds']) if known and known['key'] == self.key(mutant) and \
            known['outcome'].startswith('killed') else None

    def add(self, mutant, outcome, seconds):
        with self.lock:
            if RESULTS.is_file():  # results of other runs since
                self.known = json.loads(RESULTS.read_text(encoding='utf-8'))
            self.known[mutant['name']] = {'key': self.key(mutant), 'outcome': outcome, 'seconds': round(seconds, 1)}
            temporary = RESULTS.with_suffix('.new')
            temporary.write_text(json.dumps(self.known, indent=1), encoding='utf-8')
            temporary.replace(RESULTS)


def run(suites, mutants, jobs, results):
    """Returns [(mutant, outcome, CPU seconds)] and the CPU seconds before the first mutant."""
    done = [(mutant, *results.killed(mutant)) for mutant in mutants if results.killed(mutant)]
    mutants = [mutant for mutant in mutants if not results.killed(mutant)]
    if done:
        print(f'{len(done)} were killed before and are what they were')
    if not mutants:
        return done, 0.0
    used = [name for name in suites if any(name in mutant['suites'] for mutant in mutants)]
    targets = sorted({suites[name].get('target', '') for name in used} - {''})
    print('building what the tests need', flush=True)
    base = Base(jobs)
    first = Work(base, suites)
    base.copy()
    base.configure(first)
    if targets:
        status, output = base.make(first, targets, jobs)
        if status != 0:
            sys.exit(f'the sources do not build:\n{output[-3000:]}')
    base.learn(targets)
    limits = {}

    def without_a_mutant(name):
        work = Work(base, suites)
        status, output = work.try_suite(name, 1800)
        first.seconds += work.seconds
        if status != 0:
            return f'suite {name} fails without a mutant:\n{output[-3000:]}'
        limits[name] = 10 + 5 * work.seconds
        print(f'suite {name} passes, {work.seconds:.1f} processor seconds', flush=True)
        return ''

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        if faults := [fault for fault in pool.map(without_a_mutant, used) if fault]:
            sys.exit('\n'.join(faults))

    def one(mutant):
        work = Work(base, suites, mutant)
        outcome = work.outcome(limits)
        results.add(mutant, outcome, work.seconds)
        print(f'{mutant["area"]:9} {mutant["name"]:58} {outcome} ({work.seconds:.0f} s)', flush=True)
        return mutant, outcome, work.seconds

    # Mutants built in place come last, when nothing else links the base, grouped by file.
    outcomes = []
    for last in (False, True):
        phase = [mutant for mutant in mutants if in_place(mutant, suites) == last]
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            outcomes += pool.map(one, sorted(phase, key=lambda mutant: mutant['file']))
    return done + outcomes, first.seconds


def report(results, overhead, equivalent):
    results = sorted(results, key=lambda result: (result[0]['area'], result[0]['name']))
    print(f'\n{"area":9} {"mutant":58} {"outcome":44} {"s":>4}')
    for mutant, outcome, seconds in results:
        print(f'{mutant["area"]:9} {mutant["name"]:58} {outcome[:44]:44} {seconds:4.0f}')
    for mutant in equivalent:
        print(f'{mutant["area"]:9} {mutant["name"]:58} equivalent: {mutant["equivalent"]}')
    print(f'\n{"area":9} {"killed":>6} {"of":>4} {"equivalent":>11} {"processor s":>12}')
    for area in sorted({mutant['area'] for mutant, _, _ in results}):
        mine = [(outcome, seconds) for mutant, outcome, seconds in results if mutant['area'] == area]
        same = sum(mutant['area'] == area for mutant in equivalent)
        print(f'{area:9} {sum(outcome.startswith("killed") for outcome, _ in mine):6} {len(mine):4} {same:11} '
              f'{sum(seconds for _, seconds in mine):12.0f}')
    total = sum(seconds for _, _, seconds in results)
    print(f'CPU time: {total:.0f} s for the mutants, {overhead:.0f} s to build and to run the suites without one: '
          f'{(total + overhead) / 120:.0f} minutes on two cores')
    killed = sum(outcome.startswith('killed') for _, outcome, _ in results)
    for mutant, outcome, _ in results:
        if outcome == 'SURVIVED':
            print(f'survived: {mutant["name"]} ({mutant["file"]}): {mutant["why"]}')
    broken = [mutant['name'] for mutant, outcome, _ in results if outcome.startswith('does not build')]
    for name in broken:
        print(f'error: {name} does not build, so that it says nothing about the tests')
    print(f'{killed} of {len(results)} killed, {len(equivalent)} equivalent')
    return 1 if broken else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('names', nargs='*', metavar='NAME')
    parser.add_argument('--area', action='append', help='may be given more than once')
    parser.add_argument('--jobs', type=int, default=os.cpu_count() or 1, help='mutants at a time (default: the cores)')
    parser.add_argument('--resume', action='store_true', help='go on from the results of an earlier run')
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
    areas = {mutant['area'] for mutant in mutants}
    if unknown := set(asked.area or []) - areas:
        print(f'no area is called {" or ".join(sorted(unknown))}; there are: {" ".join(sorted(areas))}')
        return 2
    chosen = [mutant for mutant in mutants if (not asked.area or mutant['area'] in asked.area) and
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
    WORK.mkdir(parents=True, exist_ok=True)
    results, overhead = run(suites, chosen, asked.jobs, Results(asked.resume)) if chosen else ([], 0.0)
    return report(results, overhead, equivalent)


if __name__ == '__main__':
    sys.exit(main())
