//! Booleans as Go writes them: `true`, `1`, `T` and the like.

/// The boolean, if the text is one.
pub fn parse(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_booleans_are_read() {
        let all = |texts: [&str; 6], read| texts.into_iter().all(|text| parse(text) == Some(read));
        assert!(all(["1", "t", "T", "true", "TRUE", "True"], true));
        assert!(all(["0", "f", "F", "false", "FALSE", "False"], false));
        for text in ["", "yes", "tRUE", " true", "2"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
