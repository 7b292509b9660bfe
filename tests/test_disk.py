"""The disk: files are whole or not there."""

import errno
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from processes import UNIX, begun, said

from batchensemble.disk import written_together, written_whole


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "checkpoint"
    path.write_text("whole")
    return path


def test_a_failed_write_leaves_the_former_file(path: Path) -> None:
    with pytest.raises(TypeError), written_whole(path) as beside, beside.open("wb") as file:
        file.writelines([b"ha", None])
    assert path.read_text() == "whole"
    assert list(path.parent.iterdir()) == [path]


def test_a_file_is_on_the_disk_before_it_has_its_name(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[tuple[int, str]] = []
    monkeypatch.setattr(os, "fsync", lambda file: found.append((os.fstat(file).st_size, path.read_text())))
    with written_whole(path) as beside:
        beside.write_text("the next")
    assert found == [(len("the next"), "whole")]
    assert path.read_text() == "the next"


def test_a_full_disk_says_so(path: Path) -> None:
    with pytest.raises(OSError, match="disk is full") as failure, written_whole(path):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert failure.value.errno == errno.ENOSPC
    assert path.read_text() == "whole"


def test_what_another_file_answers_is_told_as_it_is(path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"No such file.*the source"), written_whole(path) as beside:
        beside.write_bytes((path.parent / "the source").read_bytes())
    assert list(path.parent.iterdir()) == [path]


def test_who_writes_nothing_replaces_nothing(path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="as it was before"), written_whole(path):
        pass
    assert path.read_text() == "whole"


def test_threads_do_not_meet(path: Path) -> None:
    def other() -> None:
        with written_whole(path) as beside:
            beside.write_text("theirs")

    with written_whole(path) as beside:
        beside.write_text("mine")
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert path.read_text() == "theirs"
    assert path.read_text() == "mine"


def write_pair(path: Path, text: str) -> None:
    with written_together(path) as folder:
        (folder / path.name).write_text(text)
        (folder / f"{path.name}.data").write_text(text)


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_files_that_belong_together_come_together(path: Path) -> None:
    write_pair(path, "one")
    assert contents(path.parent) == {"checkpoint": "one", "checkpoint.data": "one"}
    write_pair(path, "two")
    assert contents(path.parent) == {"checkpoint": "two", "checkpoint.data": "two"}


def test_a_failed_write_leaves_the_former_files(path: Path) -> None:
    write_pair(path, "one")
    with pytest.raises(OSError, match=r"disk is full; .*checkpoint is as it was"), written_together(path) as folder:
        raise OSError(errno.ENOSPC, "No space left on device", str(folder / "checkpoint.data"))
    with pytest.raises(FileNotFoundError, match="as it was before"), written_together(path) as folder:
        (folder / "checkpoint.data").write_text("two")
    assert contents(path.parent) == {"checkpoint": "one", "checkpoint.data": "one"}


def test_no_file_is_ever_beside_what_belongs_to_another(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted before each of its moves, it leaves an old pair or no first file."""
    replace = Path.replace
    for moves, left in enumerate([{"checkpoint.data": "old"}, {"checkpoint.data": "new"}]):
        write_pair(path, "old")
        done: list[Path] = []

        def interrupted(self: Path, target: Path, done: list[Path] = done, moves: int = moves) -> Path:
            if len(done) == moves:
                raise KeyboardInterrupt
            done.append(target)
            return replace(self, target)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", interrupted)
            with pytest.raises(KeyboardInterrupt):
                write_pair(path, "new")
        assert contents(path.parent) == left


def test_a_folder_that_a_killed_writer_left_is_removed_by_a_later_one(path: Path) -> None:
    left = path.with_name(f".checkpoint.{unused_process()}.1.part")
    left.mkdir()
    (left / "checkpoint.data").write_text("half")
    write_pair(path, "new")
    assert parts(path.parent) == [left], "it may be a process of another machine, which lives"
    age(left)
    write_pair(path, "new")
    assert not parts(path.parent)


def unused_process() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def parts(folder: Path) -> list[Path]:
    return sorted(folder.glob(".*.part"))


def write(path: Path) -> None:
    with written_whole(path) as beside:
        beside.write_text("new")


def age(path: Path) -> None:
    """Makes a file one that nobody has written to for two days."""
    then = time.time() - 2 * 24 * 3600
    os.utime(path, (then, then))


def writer(path: Path) -> subprocess.Popen[str]:
    """A process in the middle of writing `path`."""
    code = """
        with written_whole(path) as beside:
            beside.write_text("half")
            print("begun", flush=True)
            time.sleep(60)
    """
    return begun(path, code)


def test_what_a_killed_writer_left_is_removed_by_a_later_one(path: Path) -> None:
    with writer(path) as process:
        process.kill()
    (left,) = parts(path.parent)
    write(path)
    assert parts(path.parent) == [left], "it may be a process of another machine, which lives"
    age(left)
    write(path.with_name("check"))
    write(path.with_name("checkpoint.2"))
    assert parts(path.parent) == [left], "of another file"
    write(path)
    assert not parts(path.parent)
    assert path.read_text() == "new"


@UNIX
def test_what_a_living_writer_writes_is_never_removed(path: Path) -> None:
    with writer(path) as process:
        (left,) = parts(path.parent)
        age(left)
        write(path)
        assert parts(path.parent) == [left]
        process.kill()
    with written_whole(path) as beside:
        beside.write_text("mine")
        age(beside)
        thread = threading.Thread(target=write, args=(path,))
        thread.start()
        thread.join()
        assert parts(path.parent) == [beside]


def test_a_name_of_no_process_is_nobodys(path: Path) -> None:
    strange = path.with_name(f".checkpoint.{10**30}.1.part")
    strange.touch()
    age(strange)
    write(path)
    assert parts(path.parent) == [strange]


@UNIX
def test_a_forked_child_that_leaves_the_block_leaves_the_file(path: Path) -> None:
    code = """
        with written_whole(path) as beside:
            beside.write_text("new")
            child = os.fork()
            if not child:
                sys.exit()
            os.waitpid(child, 0)
    """
    assert said(path, code) == ""
    assert path.read_text() == "new"


def test_a_process_may_go_elsewhere_while_it_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    with written_whole(Path("note.txt")) as beside:
        beside.write_text("whole")
        monkeypatch.chdir(tmp_path / "elsewhere")
    assert (tmp_path / "note.txt").read_text() == "whole"
    assert not list(tmp_path.glob(".*"))
