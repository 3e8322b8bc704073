//! The schemas of values in `openapi`, with all files that they refer to. An unreadable file must never count as
//! absent.

use std::io;
use std::path::{Path, PathBuf};

use values_schema::schema::{Files, Schemas, references};

use super::{Fault, Problem, Severity};

const FOLDER: &str = "openapi";

/// The largest number of files for the schemas of one owner.
pub(super) const MAX_FILES: usize = 100;

/// Reads the schemas beside an owner's hooks. An invalid file is reported as a fault and left out.
pub(super) fn read(owner: &Path, faults: &mut Vec<Problem>) -> Schemas {
    let folder = owner.join(FOLDER);
    let schemas = read_folder(&folder);
    schemas.unwrap_or_else(|(path, fault)| {
        faults.push(Problem::new(Severity::Fatal, path, fault));
        Schemas::default()
    })
}

type Mistake = (PathBuf, Fault);

fn read_folder(folder: &Path) -> Result<Schemas, Mistake> {
    let mut files = Files::default();
    let config = add(&mut files, &folder.join("config-values.yaml"))?;
    let values = add(&mut files, &folder.join("values.yaml"))?;
    Schemas::load(&files, config.as_deref(), values.as_deref())
        .map_err(|error| (folder.to_owned(), Fault::Schema(Box::new(error))))
}

/// Adds a file and the files that it refers to. Returns its name; none if it is absent or empty.
fn add(files: &mut Files, path: &Path) -> Result<Option<String>, Mistake> {
    let Some(name) = path.to_str() else {
        return Err((path.to_owned(), Fault::NameNotUnicode));
    };
    let Some(text) = text_of(path)?.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let mut left: Vec<String> = references(name, &text).into_iter().collect();
    files.insert(name, text);
    while let Some(name) = left.pop() {
        if files.contains(&name) {
            continue;
        }
        if files.len() >= MAX_FILES {
            return Err((path.to_owned(), Fault::TooManySchemas));
        }
        // A missing file is reported later, with the place that refers to it.
        if let Some(text) = text_of(Path::new(&name))? {
            left.extend(references(&name, &text));
            files.insert(name, text);
        }
    }
    Ok(Some(name.to_owned()))
}

fn text_of(path: &Path) -> Result<Option<String>, Mistake> {
    match fs_err::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => Ok(None),
        Err(error) => Err((path.to_owned(), Fault::Unreadable(error))),
    }
}
