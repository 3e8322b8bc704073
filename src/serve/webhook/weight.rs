//! How much memory a document takes once it is read. A guess from above, made before that memory is taken.

/// An object, with the first of its fields: maps allocate room for eleven at once.
const OBJECT: usize = 640;
/// A further field or item, with the room that a list keeps for more.
const VALUE: usize = 80;

/// Looks at marks outside of texts alone; whether it is a document at all is found out by who reads it.
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
