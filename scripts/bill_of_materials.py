#!/usr/bin/env python3
"""Prints what an installed tree is made of, as an SPDX 2.3 document: its files with their sums, what was compiled into them, and what the
shared objects and programs load.

    bill_of_materials.py --version V --tools FOLDER TREE        FOLDER: the private tools; SOURCE_DATE_EPOCH says when
"""
import argparse
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess


def header_version(path, *macros):
    """The values of macros of a header, joined by dots; NOASSERTION where it cannot be read."""
    try:
        text = pathlib.Path(path).read_text(encoding='utf-8', errors='replace')
    except OSError:
        return 'NOASSERTION'
    found = [re.search(rf'#define {macro}\s+"?([\w.]+)', text) for macro in macros]
    return '.'.join(match[1] for match in found) if all(found) else 'NOASSERTION'


def compiled_in(tools, tree):
    """Third-party sources that parts of the tree contain: name, version, licence, which part."""
    include = pathlib.Path(tools) / 'include'
    parts = [('Highway', header_version('/usr/include/hwy/highway.h', 'HWY_MAJOR', 'HWY_MINOR', 'HWY_PATCH'),
              'Apache-2.0 OR BSD-3-Clause', 'lib/libfovea.a'),
             ('Vulkan-Headers', '1.4.' + header_version(include / 'vulkan/vulkan_core.h', 'VK_HEADER_VERSION'), 'Apache-2.0',
              'lib/libfovea.a'),
             ('volk', header_version(include / 'volk.h', 'VOLK_HEADER_VERSION'), 'MIT', 'lib/libfovea_volk.a'),
             ('VulkanMemoryAllocator', 'NOASSERTION', 'MIT', 'lib/libfovea_vma_code.a'),
             # A release links the next three statically.
             ('utf8proc', header_version('/usr/include/utf8proc.h', *(f'UTF8PROC_VERSION_{part}' for part in ('MAJOR', 'MINOR', 'PATCH'))),
              'MIT AND Unicode-DFS-2015', 'lib/libfovea_runtime.so'),
             ('libpng', header_version('/usr/include/png.h', 'PNG_LIBPNG_VER_STRING'), 'libpng-2.0', 'bin/fovea'),
             ('zlib', header_version('/usr/include/zlib.h', 'ZLIB_VERSION'), 'Zlib', 'bin/fovea'),
             ('Dear ImGui', header_version(include / 'imgui/imgui.h', 'IMGUI_VERSION'), 'MIT', 'bin/fovea-visualizer')]
    return [part for part in parts if list(tree.glob(part[3].replace('lib/', '**/', 1)))]


def loaded(path):
    """Returns the libraries that the dynamic linker loads for a file, and its own name."""
    with open(path, 'rb') as file:
        is_windows = file.read(2) == b'MZ'
    command, pattern = (['objdump', '-p'], r'DLL Name: (\S+)') if is_windows else (['readelf', '-d'], r'\(NEEDED\).*\[(.*?)\]')
    text = subprocess.run([*command, path], capture_output=True, text=True, check=False).stdout
    return re.findall(pattern, text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--version', required=True)
    parser.add_argument('--tools', required=True)
    parser.add_argument('tree', type=pathlib.Path)
    arguments = parser.parse_args()
    files = sorted(p for p in arguments.tree.rglob('*') if p.is_file() and not p.is_symlink())
    sums = {p: {'SHA1': hashlib.sha1(p.read_bytes()).hexdigest(), 'SHA256': hashlib.sha256(p.read_bytes()).hexdigest()}
            for p in files}
    own = {p.name for pattern in ('*.so*', '*.dll') for p in arguments.tree.rglob(pattern)}
    needed = sorted({name for p in files for name in loaded(p)} - own)
    parts = compiled_in(arguments.tools, arguments.tree)

    def package(number, name, version, licence):
        return {'SPDXID': f'SPDXRef-Package-{number}', 'name': name, 'versionInfo': version, 'downloadLocation': 'NOASSERTION',
                'filesAnalyzed': False, 'licenseConcluded': licence, 'licenseDeclared': licence,
                'copyrightText': 'NOASSERTION'}

    packages = [package(0, 'fovea', arguments.version, 'Apache-2.0')]
    # As the specification makes it of the files: the sum of their sorted sums.
    code = hashlib.sha1(''.join(sorted(s['SHA1'] for s in sums.values())).encode()).hexdigest()
    packages[0].update(filesAnalyzed=True, packageVerificationCode={'packageVerificationCodeValue': code},
                       licenseInfoFromFiles=['Apache-2.0'])
    relations = [{'spdxElementId': 'SPDXRef-DOCUMENT', 'relationshipType': 'DESCRIBES',
                  'relatedSpdxElement': 'SPDXRef-Package-0'}]
    for name, version, licence, _ in parts:
        relations.append({'spdxElementId': 'SPDXRef-Package-0', 'relationshipType': 'CONTAINS',
                          'relatedSpdxElement': f'SPDXRef-Package-{len(packages)}'})
        packages.append(package(len(packages), name, version, licence))
    for name in needed:
        relations.append({'spdxElementId': 'SPDXRef-Package-0', 'relationshipType': 'DYNAMIC_LINK',
                          'relatedSpdxElement': f'SPDXRef-Package-{len(packages)}'})
        packages.append(package(len(packages), name, 'NOASSERTION', 'NOASSERTION'))
    relations += [{'spdxElementId': 'SPDXRef-Package-0', 'relationshipType': 'CONTAINS', 'relatedSpdxElement': f'SPDXRef-File-{n}'}
                  for n in range(len(files))]
    created = datetime.datetime.fromtimestamp(int(os.environ['SOURCE_DATE_EPOCH']), datetime.timezone.utc)
    print(json.dumps({
        'spdxVersion': 'SPDX-2.3', 'dataLicense': 'CC0-1.0', 'SPDXID': 'SPDXRef-DOCUMENT',
        'name': f'fovea-{arguments.version}', 'documentNamespace': f'urn:fovea:{arguments.version}:{code}',
        'creationInfo': {'created': created.strftime('%Y-%m-%dT%H:%M:%SZ'), 'creators': ['Organization: The Fovea authors']},
        'packages': packages,
        'files': [{'SPDXID': f'SPDXRef-File-{n}', 'fileName': './' + str(p.relative_to(arguments.tree)),
                   'checksums': [{'algorithm': name, 'checksumValue': value} for name, value in sums[p].items()],
                   'licenseConcluded': 'Apache-2.0', 'licenseInfoInFiles': ['Apache-2.0'],
                   'copyrightText': 'NOASSERTION'} for n, p in enumerate(files)],
        'relationships': relations}, indent=1))


if __name__ == '__main__':
    main()
