//! The conversion between kebab-case and camelCase, as in the original.
//!
//! Digits are special: behind a digit a lower-case letter begins no word, and a capital letter does. Must never change,
//! because existing `ConfigMaps` have these keys.

/// Converts `foo-bar` to `fooBar`.
pub(super) fn to_camel(text: &str) -> String {
    let mut camel = String::with_capacity(text.len());
    for word in words(text) {
        let mut chars = word.chars();
        if camel.is_empty() {
            camel.extend(chars.flat_map(char::to_lowercase));
        } else {
            camel.extend(chars.next().into_iter().flat_map(char::to_uppercase));
            camel.extend(chars.flat_map(char::to_lowercase));
        }
    }
    camel
}

/// Converts `fooBar` to `foo-bar`.
pub(super) fn to_kebab(text: &str) -> String {
    words(text)
        .iter()
        .map(|word| word.to_lowercase())
        .collect::<Vec<_>>()
        .join("-")
}

/// The boundary between a character and the one before it.
enum Boundary {
    None,
    /// The character begins a word.
    Before,
    /// The character itself separates two words.
    Instead,
}

fn words(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.trim().chars().collect();
    let mut words = Vec::new();
    let mut word = String::new();
    for (at, &current) in chars.iter().enumerate() {
        let previous = at.checked_sub(1).and_then(|before| chars.get(before)).copied();
        match boundary(previous, current, chars.get(at + 1).copied()) {
            Boundary::None => word.push(current),
            Boundary::Before => {
                words.push(std::mem::take(&mut word));
                word.push(current);
            }
            Boundary::Instead => words.push(std::mem::take(&mut word)),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

fn boundary(previous: Option<char>, current: char, next: Option<char>) -> Boundary {
    let is = |c: Option<char>, test: fn(char) -> bool| c.is_some_and(test);
    if current.is_lowercase() {
        return Boundary::None;
    }
    if current == '_' || current == '-' || current.is_whitespace() {
        return Boundary::Instead;
    }
    let after_word = is(previous, char::is_lowercase);
    let after_initials = is(previous, char::is_uppercase) && is(next, char::is_lowercase);
    if current.is_uppercase() && (after_word || after_initials) {
        return Boundary::Before;
    }
    if is(previous, char::is_numeric) {
        // A version number is one word.
        if (current == '.' || current == ',') && is(next, char::is_numeric) {
            return Boundary::None;
        }
        if !current.is_numeric() && current != '.' {
            return Boundary::Before;
        }
    }
    if current == '.' {
        Boundary::Instead
    } else {
        Boundary::None
    }
}
