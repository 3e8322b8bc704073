//! Reads a record that a person has brought. A record with a mistake must never be replayed: the mistake names its field.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use thiserror::Error;

use super::record::{Content, FORM, NamedFile, Program, Record, RunFile, VARIABLES};

/// A mistake in a record.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Damage {
    #[error("it is no JSON: {0}; the file may be cut, fetch the record again with `hook records ID`")]
    NoJson(String),
    #[error("field {field}: {problem}")]
    Field { field: String, problem: String },
}

/// The fields of a map, which are taken one by one.
struct Fields {
    path: String,
    map: Map<String, Value>,
}

fn bad(field: impl Into<String>, problem: impl Into<String>) -> Damage {
    Damage::Field {
        field: field.into(),
        problem: problem.into(),
    }
}

impl Fields {
    fn of(path: &str, value: Value) -> Result<Self, Damage> {
        match value {
            Value::Object(map) => Ok(Self {
                path: path.to_owned(),
                map,
            }),
            _ => Err(bad(if path.is_empty() { "(root)" } else { path }, "it should be a map")),
        }
    }

    fn at(&self, key: &str) -> String {
        match self.path.as_str() {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        }
    }

    fn take<T: DeserializeOwned>(&mut self, key: &str) -> Result<T, Damage> {
        let value = self.map.remove(key).ok_or_else(|| bad(self.at(key), "it is missing"))?;
        serde_json::from_value(value).map_err(|error| bad(self.at(key), error.to_string()))
    }

    fn take_if_there<T: DeserializeOwned>(&mut self, key: &str) -> Result<Option<T>, Damage> {
        if self.map.contains_key(key) {
            self.take(key)
        } else {
            Ok(None)
        }
    }

    fn take_fields(&mut self, key: &str) -> Result<Self, Damage> {
        let value = self.take(key)?;
        Self::of(&self.at(key), value)
    }

    /// A number of seconds.
    fn take_seconds(&mut self, key: &str) -> Result<f64, Damage> {
        let seconds: f64 = self.take(key)?;
        if (0.0..1e9).contains(&seconds) {
            Ok(seconds)
        } else {
            Err(bad(self.at(key), "it is no number of seconds"))
        }
    }

    /// Refuses the fields that were not taken.
    fn end(self) -> Result<(), Damage> {
        match self.map.keys().next() {
            None => Ok(()),
            Some(key) => Err(bad(self.at(key), "there is no such field of a record")),
        }
    }
}

pub(super) fn record(text: &str) -> Result<Record, Damage> {
    let value: Value = serde_json::from_str(text).map_err(|error| Damage::NoJson(error.to_string()))?;
    let mut fields = Fields::of("", value)?;
    let form: u32 = fields.take("record")?;
    if form != FORM {
        let problem = format!("this program reads form {FORM}, and the record has form {form}");
        return Err(bad("record", problem));
    }
    let program = program(fields.take_fields("program")?)?;
    let files = files(fields.take_fields("files")?)?;
    let stdout = content(fields.take_fields("stdout")?)?;
    let stderr = content(fields.take_fields("stderr")?)?;
    let record = Record {
        record: form,
        id: fields.take("id")?,
        hook: fields.take("hook")?,
        module: fields.take("module")?,
        cause: fields.take("cause")?,
        binding: fields.take("binding")?,
        queue: fields.take("queue")?,
        began: fields.take("began")?,
        seconds: fields.take_seconds("seconds")?,
        deadline_seconds: fields.take_seconds("deadlineSeconds")?,
        program,
        files,
        end: fields.take("end")?,
        failure: fields.take_if_there("failure")?,
        stdout,
        stderr,
    };
    fields.end()?;
    Ok(record)
}

fn program(mut fields: Fields) -> Result<Program, Damage> {
    let variables: BTreeMap<String, String> = fields.take("variables")?;
    if let Some(name) = variables.keys().find(|name| !VARIABLES.contains(&name.as_str())) {
        return Err(bad(
            format!("program.variables.{name}"),
            format!("the operator sets only {}", VARIABLES.join(", ")),
        ));
    }
    let program = Program {
        path: fields.take("path")?,
        arguments: fields.take("arguments")?,
        module: fields.take("module")?,
        directory: fields.take("directory")?,
        variables,
    };
    let texts = program.arguments.iter().chain(program.variables.values());
    let paths = [Some(&program.path), program.module.as_ref(), program.directory.as_ref()];
    if texts.chain(paths.into_iter().flatten()).any(|text| text.contains('\0')) {
        return Err(bad("program", "it has a zero byte"));
    }
    if program.path.is_empty() {
        return Err(bad("program.path", "it is empty"));
    }
    fields.end()?;
    Ok(program)
}

fn files(mut fields: Fields) -> Result<BTreeMap<String, NamedFile>, Damage> {
    let mut files = BTreeMap::new();
    let mut names = BTreeSet::new();
    for file in RunFile::ALL {
        let variable = file.variable();
        if !fields.map.contains_key(variable) {
            continue;
        }
        let mut of_file = fields.take_fields(variable)?;
        let name: String = of_file.take("name")?;
        let at = of_file.at("name");
        if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']) {
            return Err(bad(at, "it should be the name of a file, without a directory"));
        }
        if !names.insert(name.clone()) {
            return Err(bad(at, "another file has the same name"));
        }
        let content = content(of_file)?;
        files.insert(variable.to_owned(), NamedFile { name, content });
    }
    if !files.contains_key(RunFile::Contexts.variable()) {
        return Err(bad(fields.at(RunFile::Contexts.variable()), "it is missing"));
    }
    fields.end()?;
    Ok(files)
}

fn content(mut fields: Fields) -> Result<Content, Damage> {
    let content = Content {
        text: fields.take("text")?,
        masked: fields.take("masked")?,
        left_out: fields.take_if_there("leftOut")?,
    };
    fields.end()?;
    Ok(content)
}
