//! Texts that Go's readers refuse or read differently, while our parser accepts them. Must never accept a text that the
//! parser refuses.

use granit_parser::YamlVersion;

use super::{TextPlace, YamlError};

/// Refuses characters that Go's reader refuses everywhere, and our parser only in some places.
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

/// Refuses unknown directives. `%YAML` and `%TAG` are known, before the first document.
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

/// Refuses versions of YAML other than 1.1, as Go's readers do.
pub(super) fn refuse_newer(version: Option<YamlVersion>, place: TextPlace) -> Result<(), YamlError> {
    match version {
        Some(YamlVersion { major, minor }) if (major, minor) != (1, 1) => {
            let problem = format!("a document of YAML {major}.{minor}: leave the version out, or write 1.1");
            Err(YamlError::at(place, problem))
        }
        Some(_) | None => Ok(()),
    }
}

/// Refuses an escaped slash, which is valid in JSON and not in YAML 1.1.
pub(super) fn refuse_escaped_slash(written: &str, place: TextPlace) -> Result<(), YamlError> {
    let mut chars = written.chars();
    while let Some(c) = chars.next() {
        if c == '\\' && chars.next() == Some('/') {
            return Err(YamlError::at(place, "the escape '\\/' is not known: write '/'"));
        }
    }
    Ok(())
}

/// Removes the line break at the end of a block scalar if the text has none there.
pub(super) fn end_as_written(text: &mut String, written: &str) {
    let Some(read) = text.strip_suffix('\n') else {
        return;
    };
    let last = written.rsplit('\n').next().unwrap_or_default();
    let content = last.trim_start_matches(' ');
    let line = read.rsplit('\n').next().unwrap_or_default();
    let is_of_last = if content.is_empty() {
        // The text ends with a line of blanks. If these exceed the indentation, the blanks are contents and no break
        // follows. A block with a single blank line also has no break at its end.
        !last.is_empty()
            && (last.ends_with(line) && !line.is_empty() || text == "\n" && written.matches('\n').count() == 1)
    } else {
        line.ends_with(content)
    };
    if is_of_last {
        text.pop();
    }
}
