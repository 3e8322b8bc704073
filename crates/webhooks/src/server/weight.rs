//! An upper estimate of the memory that a document needs once it is parsed.

/// An object with its first field: a map allocates room for eleven fields at once.
const OBJECT: usize = 640;
/// A further field or item, with the spare room of a list.
const VALUE: usize = 80;

/// Counts punctuation outside of texts. The parser finds out whether the body is valid JSON.
pub(super) fn weight(body: &[u8]) -> usize {
    let (mut weight, mut in_text, mut escaped) = (body.len(), false, false);
    for byte in body {
        if in_text {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_text = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_text = true,
            b'{' => weight += OBJECT,
            b'[' | b',' => weight += VALUE,
            _ => {}
        }
    }
    weight
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_things_weigh_more_than_their_text() {
        for (text, wanted) in [
            (r#""a,b{[\",""#, 0),
            ("[1,2,3]", 3 * VALUE),
            (r#"[{"a":1},{}]"#, 2 * VALUE + 2 * OBJECT),
            ("no document", 0),
        ] {
            assert_eq!(weight(text.as_bytes()), text.len() + wanted, "{text}");
        }
    }
}
