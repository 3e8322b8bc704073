//! Texts of the cluster, made fit for a sentence.
//!
//! Images, messages and log lines are written by others. Must never let through a control character, a line break, an
//! invisible character, or a text that is longer than its bound.

/// The most characters of a sentence.
pub(crate) const SENTENCE: usize = 400;

/// The most characters of one text of the cluster inside a sentence.
pub(crate) const MESSAGE: usize = 200;

/// The most characters of a name or a reason.
pub(crate) const NAME: usize = 80;

/// The text on one line, without characters that are not seen, cut to the number of characters.
pub(crate) fn harmless(text: &str, most: usize) -> String {
    let mut plain = String::new();
    let mut length = 0;
    let mut gap = false;
    for character in text.chars().filter(|character| !is_hidden(*character)) {
        if character.is_whitespace() || character.is_control() {
            gap = length > 0;
            continue;
        }
        let needed = 1 + usize::from(gap);
        if length + needed > most {
            return cut(plain, length, most);
        }
        if gap {
            plain.push(' ');
        }
        plain.push(character);
        length += needed;
        gap = false;
    }
    plain
}

/// Puts an ellipsis at the end, in the place of the last character if there is no room.
fn cut(mut text: String, length: usize, most: usize) -> String {
    if length == most {
        text.pop();
        text.truncate(text.trim_end().len());
    }
    if most > 0 {
        text.push('…');
    }
    text
}

/// Characters without a shape of their own, which hide or reorder the text around them.
fn is_hidden(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The noun with its count, as in `1 pod` and `2 pods`.
pub(crate) fn counted(count: i64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_comes_on_one_line() {
        assert_eq!(harmless("  a\r\n\tb\u{0}c \u{2028} d\u{1b}[31m ", 50), "a b c d [31m");
        assert_eq!(harmless("user\u{202e}txt.exe\u{200b}\u{feff}", 50), "usertxt.exe");
        assert_eq!(harmless("", 5), "");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(harmless("äöüß", 4), "äöüß");
        assert_eq!(harmless("äöüßx", 4), "äöü…");
        assert_eq!(harmless("ab   cd", 4), "ab…");
        assert_eq!(harmless("ab", 1), "…");
        assert_eq!(harmless("ab", 0), "");
    }
}
