#!/usr/bin/env python3
"""What `fourpiles inspect` asks of the kernel for hostile pickles, seen by strace.

    trace_test.py FOURPILES CASES

Nothing may be started, connected or opened but the file that was given and what the loader needs
to start the program. That the tracer would see it is shown by the same pickles, loaded by Python
under the same tracer. Ends with 77, which ctest calls skipped, where nothing can be traced.
"""

import os
import pathlib
import pickle
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
TRACE = "%process,%network,%file"
# By start of the program, before the file: its libraries are added, as ldd names them.
AT_START = {"/etc/ld.so.preload", "/etc/ld.so.cache"}
# Keys of hash tables, on processors without RDRAND and RDSEED.
RANDOM = {"/dev/urandom"}
# The run time of sanitizers, which only such builds have, looks at its own process.
SANITIZERS = {"/proc/self/" + name for name in ("maps", "cmdline", "environ", "exe")}
# fork, vfork, clone and clone3, and a program in place of another.
STARTS = {"fork", "vfork", "clone", "clone3", "execve", "execveat"}
ENDS = {"exit", "exit_group"}


class Call:
    """What builds a pickle that calls a function when it is loaded."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


def trace(command):
    """The status of a command, and its calls as (name, path or None, the line)."""
    with tempfile.NamedTemporaryFile("r") as log:
        environment = dict(os.environ, ASAN_OPTIONS="detect_leaks=0")  # which traces on its own
        status = subprocess.run(
            ["strace", "-f", "-s", "4096", "-e", "trace=" + TRACE, "-o", log.name, *command],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=environment, check=False).returncode
        calls = []
        for line in log.read().splitlines():
            call = re.match(r"\d+ +(\w+)\((.*)", line)
            if call:
                path = re.search(r'"((?:[^"\\]|\\.)*)"', call[2])
                calls.append((call[1], path and path[1], line))
        return status, calls


def is_tracing_possible():
    if shutil.which("strace") is None:
        print("skipped: strace is not installed")
        return False
    status, calls = trace(["true"])
    if status != 0 or not calls:
        print("skipped: this machine lets no process be traced")
        return False
    return True


def libraries(program):
    told = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    return set(re.findall(r"(/\S+)", told))


def faults_of(program, path, at_start):
    """What inspecting the file did beyond reading it."""
    status, calls = trace([program, "inspect", "--json", path])
    faults = [] if status in (0, 1, 3) else [f"exit status {status}"]
    allowed = at_start | {path}
    reads = 0
    for number, (name, called, line) in enumerate(calls):
        is_first = number == 0 and name == "execve"
        if name.startswith("open") and called == path:
            reads += 1
            if "O_RDONLY" not in line:
                faults.append(line)
        # fstat() asks of what is open, and gives an empty path.
        elif not is_first and name not in ENDS and (name in STARTS or called not in allowed | {""}):
            faults.append(line)
    return faults if reads > 0 else faults + ["the file was not opened"]


def hostile_pickles(folder):
    """Paths of pickles, and what loading each must do: start a process, or open the marker."""
    marker = str(folder / "marker")
    payloads = {
        "system": (Call(os.system, "exit 3"), "start"),
        "popen": (Call(subprocess.check_output, ["true"]), "start"),
        "eval": (Call(eval, "__import__('os').system('exit 3')"), "start"),
        "exec": (Call(exec, "import subprocess; subprocess.call(['true'])"), "start"),
        "open": (Call(open, marker, "w"), "open"),
        "within": ({"weight": [1.0, (Call(os.system, "exit 3"),)]}, "start"),
    }
    made = []
    for name, (payload, does) in payloads.items():
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            path = folder / f"{name}{protocol}.pkl"
            path.write_bytes(pickle.dumps(payload, protocol))
            made.append((str(path), does, marker))
    return made


def does_load(path, does, marker):
    """Whether the tracer sees what loading the pickle does."""
    load = "import pickle, sys; pickle.load(open(sys.argv[1], 'rb'))"
    _, calls = trace([sys.executable, "-c", load, path])
    if does == "start":
        return any(name in STARTS for name, _, _ in calls[1:])
    return any(name.startswith("open") and called == marker for name, called, _ in calls)


def main():
    program, cases = sys.argv[1], pathlib.Path(sys.argv[2])
    if not is_tracing_possible():
        return SKIPPED
    at_start = AT_START | RANDOM | SANITIZERS | libraries(program)
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        made = hostile_pickles(pathlib.Path(name))
        paths = [path for path, _, _ in made]
        paths += sorted(map(str, cases.glob("torch/*.*")))
        paths += sorted(map(str, cases.glob("npy/bad_object.*")))
        for path in paths:
            faults = faults_of(program, path, at_start)
            failed += bool(faults)
            for fault in faults:
                print(f"{path}: {fault}")
        for path, does, marker in made[pickle.HIGHEST_PROTOCOL::pickle.HIGHEST_PROTOCOL + 1]:
            if not does_load(path, does, marker):
                print(f"{path}: loading it did nothing that the tracer saw")
                failed += 1
    print(f"{len(paths)} files inspected, {failed} with faults")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
