//! Removes, moves, replaces and changes files, and brings them back.

use std::fs;
use std::path::{Path, PathBuf};

/// What happens to a file.
pub(crate) const ACTIONS: [&str; 9] = [
    "remove",
    "move",
    "replace",
    "replace by a directory",
    "truncate",
    "empty",
    "extend",
    "make read-only",
    "new directory",
];

fn aside(file: &Path) -> PathBuf {
    let name = file.file_name().unwrap().to_string_lossy();
    file.parent().unwrap().with_file_name(format!("{name}.aside"))
}

/// Does it; `fail` is an error.
pub(crate) fn happen(action: &str, file: &Path) -> std::io::Result<()> {
    let open = || fs::OpenOptions::new().append(true).open(file);
    let directory = file.parent().unwrap();
    if action != "fail" {
        fs::copy(file, aside(file))?;
    }
    match action {
        "remove" => fs::remove_file(file),
        "move" => fs::rename(file, aside(file)),
        "replace" => {
            let other = file.with_extension("other");
            fs::write(&other, "id\n100\n200\n300\n")?;
            fs::rename(other, file)
        }
        "replace by a directory" => {
            fs::remove_file(file)?;
            fs::create_dir(file)
        }
        "truncate" => open()?.set_len(4),
        "empty" => open()?.set_len(0),
        "extend" => std::io::Write::write_all(&mut open()?, b"99\n"),
        "make read-only" => read_only(file, true).and_then(|()| read_only(directory, true)),
        "new directory" => {
            fs::rename(directory, directory.with_extension("aside"))?;
            fs::create_dir(directory)
        }
        "change a byte" => {
            let mut content = fs::read(file)?;
            content[0] ^= 1;
            fs::write(file, content)
        }
        _ => Err(std::io::Error::other("stopped by the test")),
    }
}

pub(crate) fn read_only(path: &Path, is: bool) -> std::io::Result<()> {
    let mut permissions = fs::metadata(path)?.permissions();
    permissions.set_readonly(is);
    #[cfg(unix)]
    if !is {
        std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
    }
    fs::set_permissions(path, permissions)
}

/// Brings the file back.
pub(crate) fn undo(action: &str, file: &Path) {
    let directory = file.parent().unwrap();
    match action {
        "new directory" => {
            fs::remove_dir_all(directory).unwrap();
            fs::rename(directory.with_extension("aside"), directory).unwrap();
        }
        "make read-only" => read_only(directory, false).unwrap(),
        "replace by a directory" => fs::remove_dir(file).unwrap(),
        _ => {}
    }
    let _ = fs::remove_file(file);
    fs::rename(aside(file), file).unwrap();
}
