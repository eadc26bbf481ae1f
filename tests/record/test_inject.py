"""Unmodified compiled programs, by injected code: calls that are known, however they end, and nothing else that changes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from perflaw.errors import TargetError
from perflaw.record.compiled.inject.tables import module_patches
from perflaw.record.compiled.selection import functions
from perflaw.record.launch import Launch
from perflaw.record.settings import RecordSettings
from perflaw.record.tracers import Tracer, TracerChoice
from perflaw.store.experiment import open_experiment
from tests.conftest import first
from tests.record.test_hooks import HOOKS, PROGRAMS, build_id_of, built, calls, opened, paths, recorded

UNRECORDED = ("main", "from_nowhere", "work", "threads", "forks", "signals", "leaver", "other_stack")
"""Functions of jumps.c that have no hooks in the tests of hooks."""

REFUSED_HEADS = ("unlikely", "far", "with_calls", "by_table")
"""Functions of heads.c with loops that cannot be moved."""
EXPECTED_HEADS = {
    "round_of_all": 50, "step": 50, "last": 50, "length": 50, "tail": 50, "ping": 200, "pong": 150, "to_first": 550,
    "to_second": 50, "nested": 50,
}  # fmt: skip
"""Calls of heads.c in 50 rounds; of ``to_first``, ten more are made by ``with_calls``."""
SELECTED_HEADS = (*EXPECTED_HEADS, *REFUSED_HEADS, "spin")


@pytest.fixture(scope="module", params=["gcc -O0", "gcc -O2", "gcc -O2 -no-pie", "clang -O2"])
def jumps(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler, *flags = request.param.split()
    keep = "-fno-optimize-sibling-calls"  # a recursion that became a loop has one call
    program = built(tmp_path_factory.mktemp("jumps"), "jumps.c", *flags, keep, compiler=compiler)
    assert HOOKS not in flags
    return program


def test_calls_that_longjmp_leaves(jumps: Path, tmp_path: Path) -> None:
    (recording,) = recorded(tmp_path, jumps, "longjmp", 4, exclude=UNRECORDED)
    assert calls(recording) == {"survivor": 4, "leaf": 4}
    assert opened(recording) == 1 + 2 + 3 + 4
    assert set(paths(recording)) == {"/survivor", "/survivor/leaf"}
    assert recording.run.tracer.startswith("inject: ")


def test_longjmp_into_the_middle_of_a_recursion(jumps: Path, tmp_path: Path) -> None:
    (recording,) = recorded(tmp_path, jumps, "nested", 5, exclude=UNRECORDED)
    assert calls(recording)["nested"] == 5 * 4
    assert calls(recording)["leaf"] == 5 * 4
    assert opened(recording) == 5 * 3


def test_what_follows_a_jump_reaches_deeper_than_what_it_left(jumps: Path, tmp_path: Path) -> None:
    (recording,) = recorded(tmp_path, jumps, "landing", 5, exclude=UNRECORDED)
    assert paths(recording) == {"/landing": 5, "/landing/big": 5}
    assert opened(recording) == 5


def test_a_handler_that_jumps_out_of_our_code_does_not_end_the_recording(jumps: Path, tmp_path: Path) -> None:
    (recording,) = recorded(tmp_path, jumps, "escape", 300, exclude=UNRECORDED)
    assert calls(recording)["escape"] == 300
    assert calls(recording)["leaf"] > 300


def test_deep_recursion(jumps: Path, tmp_path: Path) -> None:
    (recording,) = recorded(tmp_path, jumps, "tail", 20000, exclude=UNRECORDED)
    assert calls(recording) == {"tail": 20001, "leaf": 2}
    assert opened(recording) == 0


def test_functions_that_jump_to_one_another_return_together(tmp_path: Path) -> None:
    program = built(tmp_path, "injected.c", "-O2")
    (recording,) = recorded(tmp_path, program, "tails", 50, exclude=("main",))
    assert paths(recording) == {"/first": 50, "/first/second": 50, "/first/second/third": 50}
    assert opened(recording) == 0


def test_a_function_that_is_jumped_to_again_replaces_its_earlier_call(tmp_path: Path) -> None:
    """Or else the states of a machine would nest as deep as it takes steps."""
    program = built(tmp_path, "injected.c", "-O2")
    (recording,) = recorded(tmp_path, program, "states", 100_000, exclude=("main",))
    assert paths(recording) == {"/start": 3, "/start/even": 150_003, "/start/even/odd": 150_000}
    assert opened(recording) == 0


def compiled_heads(folder: Path, compiler: str, *flags: str) -> Path:
    return built(folder, "heads.c", "-O2", *flags, compiler=compiler)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize(
    "flags",
    first(1, map(pytest.param, [(), ("-no-pie", "-fno-pie"), ("-fcf-protection=full",)])),
    ids=["pie", "no-pie", "endbr"],
)
def test_a_loop_back_to_the_first_instructions_is_one_call(
    compiler: str, flags: tuple[str, ...], tmp_path: Path
) -> None:
    program = compiled_heads(tmp_path, compiler, *flags)
    (recording,) = recorded(tmp_path, program, 50, select=SELECTED_HEADS)
    assert calls(recording) == EXPECTED_HEADS
    assert opened(recording) == 0
    patches = module_patches(program)
    offsets = {min(names): offset for offset, (_, names) in functions(program).items()}
    refused = {name: patches.refusals[offsets[name]] for name in REFUSED_HEADS}
    assert set(refused.values()) == {"a loop back to its first instruction that cannot be moved"}
    loops = dict(zip(*(patches.patches[column].tolist() for column in ("offset", "loop")), strict=True))
    assert all(loops[offsets[name]] for name in ("to_first", "to_second", "nested", "spin"))
    assert not any(loops[offsets[name]] for name in ("ping", "pong", "step"))


def test_a_thread_that_is_cancelled_at_any_instruction_cleans_up(tmp_path: Path) -> None:
    """A loop is not copied there, because the copy has no table for unwinding."""
    program = compiled_heads(tmp_path, "gcc", "-DCANCELS", "-fexceptions")
    (recording,) = recorded(tmp_path, program, 5, select=("spin", "step", "to_first"))
    assert calls(recording) == {"step": 5}
    words = recording.run.words["inject"]
    assert "spin, to_first (a loop back to its first instructions, where pthread_cancel may end it" in words


def test_functions_that_jump_to_one_another_have_the_calls_that_hooks_tell_of(tmp_path: Path) -> None:
    by_hooks, by_injection = tmp_path / "hooks", tmp_path / "inject"
    for folder, flags in ((by_hooks, (HOOKS,)), (by_injection, ())):
        folder.mkdir()
        recorded(folder, compiled_heads(folder, "gcc", *flags), 5, select=("ping", "pong"))
    found = [calls(open_experiment("hooks", folder).recordings()[0]) for folder in (by_hooks, by_injection)]
    assert found == [{"ping": 20, "pong": 15}] * 2


def test_threads_are_counted_exactly(jumps: Path, tmp_path: Path) -> None:
    (recording,) = recorded(tmp_path, jumps, "threads", 3000, select=("leaf",))
    assert calls(recording) == {"leaf": 48000}


def test_forked_children_are_runs_of_their_own(jumps: Path, tmp_path: Path) -> None:
    program, *children = recorded(tmp_path, jumps, "forks", 3, exclude=UNRECORDED)
    assert calls(program)["leaf"] == 4
    assert sorted(calls(child)["leaf"] for child in children) == [5, 6, 7]
    assert all(child.run.parent == program.run.id for child in children)


def test_children_of_fork_vfork_and_posix_spawn_harm_nobody(tmp_path: Path) -> None:
    """What a child of vfork does before its exec is its parent's: both have one memory, and the parent waits."""
    program = built(tmp_path, "restless.c", "-O2")
    found, child = recorded(tmp_path, program, "children", exclude=("main", "children", "status_of", "is_wrong"))
    assert calls(found) == {"work": 1, "leaf": 101}
    assert calls(child) == {"work": 2, "leaf": 200}


def test_threads_that_begin_and_end_are_counted_exactly(tmp_path: Path) -> None:
    (found,) = recorded(tmp_path, built(tmp_path, "restless.c", "-O2"), "threads", exclude=("main", "threads"))
    assert calls(found)["leaf"] == 400
    assert opened(found) == 0


def test_what_it_becomes_by_exec_is_a_run_too(jumps: Path, tmp_path: Path) -> None:
    found = recorded(tmp_path, jumps, "exec", 4, fails=True, exclude=UNRECORDED)
    assert sorted(calls(one)["leaf"] for one in found) == [2, 4]


def test_signal_handlers_at_any_moment(jumps: Path, tmp_path: Path) -> None:
    (recording,) = recorded(tmp_path, jumps, "signals", exclude=UNRECORDED)
    assert calls(recording)["leaf"] == 200000
    assert opened(recording) == 0


def test_handlers_on_a_stack_of_their_own_are_left_out_and_said(jumps: Path, tmp_path: Path) -> None:
    (recording,) = recorded(tmp_path, jumps, "other_stack", exclude=UNRECORDED)
    assert paths(recording) == {"/leaf": 10}
    assert "stack" in recording.run.words["stacks"]


@pytest.mark.parametrize(("way", "ended"), [("exit", "exit status 7"), ("_exit", "without"), ("kill", "SIGKILL")])
def test_what_completed_is_kept_however_it_ends(jumps: Path, tmp_path: Path, way: str, ended: str) -> None:
    (recording,) = recorded(tmp_path, jumps, way, 50, fails=True, exclude=UNRECORDED)
    assert calls(recording)["leaf"] == 50
    assert ended in recording.run.ended


@pytest.mark.parametrize("compiler", first(1, ["gcc", "clang"]))
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_exceptions_of_cpp(tmp_path: Path, level: str, compiler: str) -> None:
    (recording,) = recorded(tmp_path, built(tmp_path, "throws.cc", level, compiler=compiler))
    counted = calls(recording)
    assert counted["app::Catcher::try_one"] == 30
    assert counted["thrower"] == counted["middle<int>"] == 20
    assert paths(recording)["/main/app::Catcher::try_one/leaf"] == 10


@pytest.mark.parametrize("level", ["-O2", *(pytest.param(one, marks=pytest.mark.slow) for one in ("-O0", "-O3"))])
def test_registers_stacks_and_unwinding_are_as_without_us(tmp_path: Path, level: str) -> None:
    """Exceptions, vector and floating-point arguments, backtraces, cancelled threads, dlopen and dlclose."""
    program = built(tmp_path, "injected.cc", level, "-rdynamic")
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", Path(__file__).parents[1] / "programs" / "plug_in.c", "-o",
                    tmp_path / "plug_in.so"], check=True)  # fmt: skip
    expected = subprocess.run([program, tmp_path / "plug_in.so"], capture_output=True, check=True, text=True).stdout
    command = ["perflaw", "record", "--", str(program), str(tmp_path / "plug_in.so")]
    done = subprocess.run([sys.executable, "-m", *command], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == expected
    assert "recorded by injected code" in done.stderr


def test_libraries_are_recorded_where_they_are_selected(tmp_path: Path) -> None:
    """The shell of Debian is stripped; the library's functions are known by the names that it exports."""
    (tmp_path / "script.sql").write_text("select 1;" * 40)
    command = ("sqlite3", ":memory:", f".read {tmp_path / 'script.sql'}")
    (recording,) = recorded(tmp_path, *command, select=("sqlite3_step", "sqlite3_prepare_v2"))
    counted = calls(recording)
    assert counted["sqlite3_prepare_v2"] >= 40 <= counted["sqlite3_step"]


SQL = (
    "with recursive c(x) as (select 1 union all select x+1 from c where x<30000)"
    " select count(*), sum(x*x), group_concat(x%7) from c;"
)
PERL = 'my %h; $h{$_ % 101} .= "x" for 1..20000; print join(",", map {length} @h{sort keys %h})'
AWK = "{s += $1 * $1; a[$1 % 17]++} END {print s; for (k in a) print k, a[k]}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("sqlite3", ":memory:", SQL), ("gzip", "-c", "numbers"), ("xz", "-c", "numbers"), ("bzip2", "-c", "numbers"),
        ("grep", "-c", "77", "numbers"), ("sed", "-n", "s/1/x/gp", "numbers"), ("sort", "-rn", "numbers"),
        ("md5sum", "numbers"), ("tar", "-cf", "-", "numbers"), ("awk", AWK, "numbers"), ("perl", "-e", PERL),
        ("bash", "-c", "for i in 1 2 3; do x=$((i*i)); echo $x; done; seq 3 | while read a; do echo $a; done"),
        ("git", "--version"), ("openssl", "dgst", "-sha256", "numbers"),
    ],
    ids=lambda command: command[0],
)  # fmt: skip
def test_programs_of_debian_do_the_same_with_every_function_recorded(command: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "numbers").write_text("".join(f"{number}\n" for number in range(60_000)))
    expected = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True).stdout
    record = [sys.executable, "-m", "perflaw", "record", "--select", "*", "--", *command]
    done = subprocess.run(record, cwd=tmp_path, capture_output=True)
    assert (done.returncode, done.stdout) == (0, expected)
    assert b"recorded by injected code" in done.stderr


def test_a_stripped_program_is_recorded_by_its_unwind_tables(tmp_path: Path) -> None:
    program = built(tmp_path, "jumps.c", "-O1", build_id_of("jumps.c", "injected"))
    subprocess.run(["strip", str(program)], check=True)
    (recording,) = recorded(tmp_path, program, "inlined")
    assert sum(calls(recording).values()) >= 5  # main too, where it returns
    assert all(re.fullmatch(r"jumps\+0x[0-9a-f]+", name) for name in calls(recording))
    (tmp_path / "chosen").mkdir()
    (chosen_only,) = recorded(tmp_path / "chosen", program, "inlined", select=(max(calls(recording)),))
    assert calls(chosen_only).keys() == {max(calls(recording))}


def chosen(tmp_path: Path, program: Path, native: str) -> tuple[Launch, Tracer]:
    return TracerChoice("auto", lambda text: None).for_command((str(program),), RecordSettings(native=native))


def test_a_program_with_hooks_is_not_injected(tmp_path: Path) -> None:
    program = built(tmp_path, "jumps.c", "-O1", HOOKS)
    assert chosen(tmp_path, program, "auto")[1].name == "hooks"
    with pytest.raises(TargetError, match="built with hooks"):
        chosen(tmp_path, program, "inject")


@pytest.mark.parametrize(("native", "words"), [("hooks", "without hooks"), ("gcov", "coverage")])
def test_a_way_that_is_forced_and_not_possible_is_refused(tmp_path: Path, native: str, words: str) -> None:
    program = built(tmp_path, "jumps.c", "-O1")
    with pytest.raises(TargetError, match=words):
        chosen(tmp_path, program, native)


def test_a_static_program_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="statically"):
        chosen(tmp_path, built(tmp_path, "jumps.c", "-O1", "-static"), "auto")


@pytest.mark.slow
@pytest.mark.parametrize("hooks", first(1, [False, True]))
def test_constructors_of_a_library_meet_functions_while_a_thread_does(hooks: bool, tmp_path: Path) -> None:
    """The loader holds its lock while constructors run; a new function is looked up in the loader, under no lock of ours."""
    count = 2000
    functions = "".join(
        f"__attribute__((noinline)) int f{i}(int n) {{ volatile int s = n; return s + {i}; }}\n" for i in range(count)
    )
    table = f"static int (*const table[])(int) = {{{', '.join(f'f{i}' for i in range(count))}}};\n"
    source = """#include <dlfcn.h>
#include <pthread.h>
static void *meet(void *unused) { for (int i = 0; i < HALF; i++) table[i](i); return unused; }
void from_constructor(void) { for (int i = HALF; i < 2 * HALF; i++) table[i](i); }
int main(int count, char **words)
{
    pthread_t thread;
    pthread_create(&thread, 0, meet, 0);
    void *opened = dlopen(words[count - 1], RTLD_NOW);
    pthread_join(thread, 0);
    return !opened;
}
"""
    (tmp_path / "many.c").write_text(functions + table + source.replace("HALF", str(count // 2)))
    (tmp_path / "plug.c").write_text(
        "void from_constructor(void); __attribute__((constructor)) void begin(void) { from_constructor(); }"
    )
    flags = ["-finstrument-functions"] if hooks else []
    subprocess.run(["gcc", "-O1", *flags, "-rdynamic", "-pthread", "many.c", "-o", "many"], cwd=tmp_path, check=True)
    subprocess.run(["gcc", "-shared", "-fPIC", "plug.c", "-o", "plug.so"], cwd=tmp_path, check=True)
    words = [sys.executable, "-m", "perflaw", "record", "--select", "f*", "--", "./many", "./plug.so"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert f"{count + 1:,} calls" in done.stderr  # that of from_constructor, too


def test_libraries_that_are_opened_and_closed_are_recorded_from_their_constructors_on(tmp_path: Path) -> None:
    """Two libraries that lie at one place in turns, and threads that open and close one of them at the same time."""
    libraries = {"one": 7, "two": 9}
    for name, answer in libraries.items():
        flags = ["-g", "-shared", "-fPIC", f"-DNAME={name}", f"-DANSWER={answer}", "-o", tmp_path / f"{name}.so"]
        subprocess.run(["gcc", "-O2", *flags, PROGRAMS / "plug.c"], check=True)
    program = built(tmp_path, "plugs.c", "-O2", "-rdynamic")
    words = [str(program), "20", *(str(tmp_path / f"{name}.so") for name in libraries)]
    assert "0 wrong, places were used again" in subprocess.run(words, capture_output=True, check=True, text=True).stdout
    (recording,) = recorded(tmp_path, *words, select=("plug_*",))
    counted = calls(recording)
    assert 20 < counted.pop("plug_begun_one") <= 80  # what one thread has open is not opened by another
    assert counted.pop("plug_begins") > 40
    assert counted == {
        "plug_calls": 100, "plug_work": 1000, "plug_inner_one": 800, "plug_inner_two": 200, "plug_begun_two": 20
    }  # fmt: skip
    assert opened(recording) == 0
    assert paths(recording)["/plug_begun_two/plug_begins"] == 20


@pytest.mark.slow
def test_a_module_of_a_real_program_is_recorded_from_its_initialisation_on(tmp_path: Path) -> None:
    """Debian's perl opens its modules itself. Of stripped ones the functions are known that they export."""
    command = ("perl", "-MPOSIX", "-MList::Util=sum", "-e", "exit(sum(1..9) != 45 || POSIX::floor(2.5) != 2)")
    (recording,) = recorded(tmp_path, *command, select=("boot_*",))
    assert calls(recording).items() >= {"boot_POSIX": 1, "boot_List__Util": 1}.items()


def test_converters_that_the_c_library_opens_itself_are_recorded(tmp_path: Path) -> None:
    """A closed library that is opened again is at its place again, and has jumps again."""
    (tmp_path / "text").write_text("perflaw\n" * 20_000)
    command = ("iconv", "-f", "ISO-8859-2", "-t", "KOI8-R", str(tmp_path / "text"), "-o", str(tmp_path / "converted"))
    (recording,) = recorded(tmp_path, *command, select=("gconv*",))
    assert calls(recording)["gconv_init"] == 2
    assert calls(recording)["gconv"] > 2
    assert (tmp_path / "converted").read_text() == (tmp_path / "text").read_text()


@pytest.mark.parametrize(
    ("how", "numbers", "ended"),
    first(2, [
        ("deadlock", [signal.SIGTERM], signal.SIGTERM), ("read", [signal.SIGINT], signal.SIGINT),
        ("spin", [signal.SIGTERM], signal.SIGTERM), ("threads", [signal.SIGINT], signal.SIGINT),
        ("deaf", [signal.SIGTERM, signal.SIGTERM], signal.SIGKILL),
    ]),
)  # fmt: skip
def test_a_signal_to_the_recorder_ends_a_program_that_hangs(
    how: str, numbers: list[signal.Signals], ended: signal.Signals, tmp_path: Path
) -> None:
    """A terminal sends SIGINT to the program too; who sends it to the recorder alone wants the same."""
    words = [sys.executable, "-m", "perflaw", "record", "--", str(built(tmp_path, "hangs.c", "-O2")), how]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as recorder:
        assert recorder.stdout and recorder.stdout.readline() == "hangs\n"
        for number in numbers:
            time.sleep(0.3)
            recorder.send_signal(number)
        recorder.communicate(timeout=30)
    assert recorder.returncode == 128 + numbers[-1]
    [recording] = open_experiment("default", tmp_path).recordings()
    assert recording.run.ended == f"killed by {ended.name}"
    assert calls(recording)["leaf"] >= 1000


@pytest.mark.parametrize("by", ["terminal", "kill"])
def test_a_program_in_a_terminal_gets_each_interrupt_once(by: str, tmp_path: Path) -> None:
    """Ctrl-C reaches the program and the recorder, ``kill`` the recorder alone, also in the terminal's foreground."""
    leader, terminal = os.openpty()
    program = str(built(tmp_path, "hangs.c", "-O2"))
    words = ["setsid", "--ctty", sys.executable, "-m", "perflaw", "record", "--", program, "counts"]
    with subprocess.Popen(words, cwd=tmp_path, stdin=terminal, stdout=subprocess.PIPE, text=True) as recorder:
        assert recorder.stdout and recorder.stdout.readline() == "hangs\n"
        if by == "terminal":
            os.write(leader, b"\x03")
        else:
            recorder.send_signal(signal.SIGINT)
        assert recorder.communicate(timeout=30)[0].startswith("1 interrupts\n")
    for end in (leader, terminal):
        os.close(end)
    assert recorder.returncode == 128 + signal.SIGINT
