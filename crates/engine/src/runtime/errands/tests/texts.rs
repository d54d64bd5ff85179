//! Files: what is below the folder and plain is read and written, and nothing else is.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use tempfile::TempDir;
use turnkeep_agents::errand::{NotDone, NotDoneWhy, limits};

use super::super::files::{directory, part, read, write};

/// A session's folder `work` beside a folder `out` that is none of its business.
struct Ground {
    root: TempDir,
    work: PathBuf,
    out: PathBuf,
}

fn ground() -> Ground {
    let root = tempfile::tempdir().expect("a folder");
    let (work, out) = (root.path().join("work"), root.path().join("out"));
    for folder in [&work, &out] {
        fs::create_dir(folder).expect("made");
    }
    fs::write(out.join("secret"), "canary").expect("written");
    Ground { root, work, out }
}

fn refused<T: std::fmt::Debug>(result: Result<T, NotDone>, words: &str) {
    let NotDone { why, message } = result.expect_err("it is refused");
    assert_eq!(why, NotDoneWhy::Refused, "{message}");
    assert!(message.contains(words), "{message:?} does not say {words:?}");
    assert!(!message.contains("canary"), "{message}");
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_file_below_the_folder_is_read_and_written() {
    let ground = ground();
    let file = ground.work.join("a/b/c.txt");
    write(&ground.work, &file, "one\ntwö\n").expect("written, with the folders that lead to it");
    assert_eq!(read(&ground.work, &file).expect("read"), "one\ntwö\n");
    write(&ground.work, &ground.work.join("a/../a/b/c.txt"), "other").expect("it stays below");
    assert_eq!(fs::read_to_string(&file).expect("there"), "other");
    assert_eq!(names(&ground.work.join("a/b")), ["c.txt"], "nothing of ours is left beside it");
    let missing = read(&ground.work, &ground.work.join("nothing")).expect_err("it is not there");
    assert_eq!(missing.why, NotDoneWhy::NotFound, "{}", missing.message);
    assert!(missing.message.contains("nothing"), "{}", missing.message);
}

#[test]
fn a_part_is_so_many_lines_from_one_on() {
    let text = "1\n2\n3\n4";
    for (first, lines, expected) in [
        (1, None, text),
        (3, None, "3\n4"),
        (2, Some(2), "2\n3\n"),
        (1, Some(0), ""),
        (4, Some(9), "4"),
        (9, None, ""),
        (u64::MAX, Some(u64::MAX), ""),
    ] {
        assert_eq!(part(text.to_owned(), first, lines), expected, "{first} {lines:?}");
    }
}

#[test]
fn nothing_outside_of_the_folder_is_read() {
    let ground = ground();
    let Ground { work, out, .. } = &ground;
    symlink(out, work.join("away")).expect("linked");
    symlink(out.join("secret"), work.join("leak")).expect("linked");
    symlink("../out/secret", work.join("relative")).expect("linked");
    for path in
        [out.join("secret"), work.join("../out/secret"), work.join("away/secret"), work.join("leak"), work.join("relative")]
    {
        refused(read(work, &path), "not below the session's folder");
    }
    // A folder whose name only begins as the session's.
    let beside = ground.root.path().join("workshop");
    fs::create_dir(&beside).expect("made");
    fs::write(beside.join("x"), "canary").expect("written");
    refused(read(work, &beside.join("x")), "not below the session's folder");
    // A link that stays below is as good as what it leads to, and the folder itself may be reached by one.
    fs::write(work.join("real"), "fine").expect("written");
    symlink(work.join("real"), work.join("link")).expect("linked");
    assert_eq!(read(work, &work.join("link")).expect("read"), "fine");
    let door = ground.root.path().join("door");
    symlink(work, &door).expect("linked");
    assert_eq!(read(&door, &door.join("real")).expect("read"), "fine");
}

#[test]
fn nothing_outside_of_the_folder_is_written() {
    let ground = ground();
    let Ground { work, out, .. } = &ground;
    symlink(out, work.join("away")).expect("linked");
    symlink(out.join("new"), work.join("dangling")).expect("linked");
    symlink(out.join("folder"), work.join("nowhere")).expect("linked");
    for path in [out.join("new"), work.join("../out/new"), work.join("away/new"), work.join("away/deep/new")] {
        refused(write(work, &path, "x"), "not below the session's folder");
    }
    refused(write(work, &work.join("dangling"), "x"), "is a link");
    refused(write(work, &work.join("nowhere/new"), "x"), "behind a link");
    refused(write(work, &work.join("missing/../../out/new"), "x"), "leads back");
    refused(write(work, &work.join("a/.."), "x"), "names no file");
    assert_eq!(names(out), ["secret"]);
    assert_eq!(names(work), ["away", "dangling", "nowhere"], "nothing was made on the way");
}

#[test]
fn a_link_is_not_written_through_and_stays() {
    let ground = ground();
    fs::write(ground.work.join("real"), "before").expect("written");
    symlink(ground.work.join("real"), ground.work.join("link")).expect("linked");
    refused(write(&ground.work, &ground.work.join("link"), "x"), "is a link");
    assert_eq!(fs::read_to_string(ground.work.join("real")).expect("there"), "before");
}

#[test]
fn only_plain_files_are_opened() {
    let ground = ground();
    let pipe = ground.work.join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR, 0)
        .expect("a pipe");
    let socket = ground.work.join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
    fs::create_dir(ground.work.join("below")).expect("made");
    // Nobody writes into the pipe: who opened it would wait for ever.
    for (name, kind) in [("pipe", "a pipe"), ("socket", "a socket"), ("below", "a folder")] {
        refused(read(&ground.work, &ground.work.join(name)), kind);
        refused(write(&ground.work, &ground.work.join(name), "x"), kind);
    }
    refused(read(&ground.work, &ground.work), "is the session's folder");
    refused(read(Path::new("/dev"), Path::new("/dev/null")), "a device");
    refused(write(Path::new("/dev"), Path::new("/dev/null"), "x"), "a device");
}

#[test]
fn what_is_no_text_or_too_large_is_refused() {
    let ground = ground();
    fs::write(ground.work.join("picture"), b"ab\xFF\xFE").expect("written");
    refused(read(&ground.work, &ground.work.join("picture")), "no text in UTF-8: byte 2 is not");
    let large = ground.work.join("large");
    let file = fs::File::create(&large).expect("made");
    file.set_len(limits::READ).expect("grown");
    assert_eq!(read(&ground.work, &large).expect("as much as is read").len() as u64, limits::READ);
    file.set_len(limits::READ + 1).expect("grown");
    refused(read(&ground.work, &large), "has 10485761 bytes; at most 10485760 are read");
}

#[test]
fn what_a_file_may_be_used_for_stays_and_a_read_only_one_is_not_replaced() {
    let ground = ground();
    let file = ground.work.join("script");
    fs::write(&file, "old").expect("written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o750)).expect("set");
    write(&ground.work, &file, "new").expect("written");
    assert_eq!(fs::metadata(&file).expect("there").permissions().mode() & 0o7777, 0o750);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).expect("set");
    refused(write(&ground.work, &file, "newer"), "read-only");
    assert_eq!(fs::read_to_string(&file).expect("there"), "new");
    assert_eq!(names(&ground.work), ["script"]);
}

#[test]
fn work_is_done_below_the_folder_only() {
    let ground = ground();
    fs::create_dir(ground.work.join("below")).expect("made");
    symlink(&ground.out, ground.work.join("away")).expect("linked");
    fs::write(ground.work.join("file"), "").expect("written");
    let real = ground.work.canonicalize().expect("real");
    assert_eq!(directory(&ground.work, &ground.work).expect("it may"), real);
    assert_eq!(directory(&ground.work, &ground.work.join("below")).expect("it may"), real.join("below"));
    for path in [ground.out.clone(), ground.work.join(".."), ground.work.join("away")] {
        refused(directory(&ground.work, &path), "not below the session's folder");
    }
    refused(directory(&ground.work, &ground.work.join("file")), "no folder");
}
