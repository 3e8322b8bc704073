//! Where Go's readers are stricter than the parser, or read the end of a text in another way. Must never accept a text that the parser
//! refuses.

use granit_parser::YamlVersion;

use super::{TextPlace, YamlError};

/// Go's reader refuses these anywhere, the parser only in some places.
pub(super) fn refuse_unprintable(text: &str) -> Result<(), YamlError> {
    let mut place = TextPlace { line: 1, column: 1 };
    for c in text.chars() {
        let printable = matches!(c,
            '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..);
        if !printable {
            return Err(YamlError::at(place, "control characters are not allowed"));
        }
        if c == '\n' {
            place = TextPlace {
                line: place.line + 1,
                column: 1,
            };
        } else {
            place.column += 1;
        }
    }
    Ok(())
}

/// `%YAML` and `%TAG` are known, before the first document.
pub(super) fn refuse_unknown_directives(text: &str) -> Result<(), YamlError> {
    for (index, line) in text.lines().enumerate() {
        let Some(directive) = line.strip_prefix('%') else {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            return Ok(());
        };
        let name = directive.split([' ', '\t']).next().unwrap_or_default();
        if !["YAML", "TAG"].contains(&name) {
            let place = TextPlace {
                line: index + 1,
                column: 1,
            };
            return Err(YamlError::at(place, format!("the directive '%{name}' is not known")));
        }
    }
    Ok(())
}

/// Go's readers know version 1.1 alone.
pub(super) fn refuse_newer(version: Option<YamlVersion>, place: TextPlace) -> Result<(), YamlError> {
    match version {
        Some(YamlVersion { major, minor }) if (major, minor) != (1, 1) => {
            let problem = format!("a document of YAML {major}.{minor}: leave the version out, or write 1.1");
            Err(YamlError::at(place, problem))
        }
        Some(_) | None => Ok(()),
    }
}

/// JSON may escape a slash, and YAML 1.1 may not.
pub(super) fn refuse_escaped_slash(written: &str, place: TextPlace) -> Result<(), YamlError> {
    let mut chars = written.chars();
    while let Some(c) = chars.next() {
        if c == '\\' && chars.next() == Some('/') {
            return Err(YamlError::at(place, "the escape '\\/' is not known: write '/'"));
        }
    }
    Ok(())
}

/// A block at the end of a text without a line break ends without one.
pub(super) fn end_as_written(text: &mut String, written: &str) {
    let Some(read) = text.strip_suffix('\n') else {
        return;
    };
    let last = written.rsplit('\n').next().unwrap_or_default();
    let content = last.trim_start_matches(' ');
    let line = read.rsplit('\n').next().unwrap_or_default();
    let is_of_last = if content.is_empty() {
        // Blanks beyond the indentation are content, and others are nothing. A block whose one line is blank has no line
        // break, either.
        !last.is_empty()
            && (last.ends_with(line) && !line.is_empty() || text == "\n" && written.matches('\n').count() == 1)
    } else {
        line.ends_with(content)
    };
    if is_of_last {
        text.pop();
    }
}
