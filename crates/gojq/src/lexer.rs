//! Splits the text of a filter into tokens, one at a time, because only the grammar knows when a string begins.
//!
//! Must never allocate for a token that points into the text, and never read past the end of the text.

use crate::error::FilterError;

/// One token of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token<'s> {
    /// A name such as `map`, with `::` if it belongs to a module.
    Name(&'s str),
    /// A reserved word such as `if`.
    Keyword(&'s str),
    /// `.name`; the value has no dot.
    Field(&'s str),
    /// `$name`; the value has the dollar sign.
    Variable(&'s str),
    /// `@name`; the value has the at sign.
    Format(&'s str),
    /// A literal number.
    Number(&'s str),
    /// The quote that opens a string. The string is read with [`Lexer::piece`].
    Quote,
    /// An operator or a bracket.
    Sign(&'s str),
    /// The end of the text.
    End,
}

/// One piece of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece<'s> {
    /// Text without escapes.
    Text(&'s str),
    /// An escaped character.
    Char(char),
    /// `\(`: a filter follows, up to its `)`.
    Splice,
    /// The closing quote.
    End,
}

const KEYWORDS: [&str; 21] = [
    "or", "and", "module", "import", "include", "def", "as", "label", "break", "null", "true", "false", "if", "then",
    "elif", "else", "end", "try", "catch", "reduce", "foreach",
];

/// Longer signs come first, so that the longest one matches.
const SIGNS: [&str; 34] = [
    "?//", "//=", "..", "|=", "+=", "-=", "*=", "/=", "%=", "//", "==", "!=", ">=", "<=", ".", "|", ",", "+", "-", "*",
    "/", "%", "=", ">", "<", "?", ":", ";", "(", ")", "[", "]", "{", "}",
];

/// Splits a text into tokens.
#[derive(Debug, Clone)]
pub(crate) struct Lexer<'s> {
    text: &'s str,
    at: usize,
}

fn starts_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

fn in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

impl<'s> Lexer<'s> {
    pub(crate) fn new(text: &'s str) -> Self {
        Self { text, at: 0 }
    }

    /// The place at which the next token is looked for.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// An error at this place of the text.
    pub(crate) fn error(&self, at: usize, what: impl Into<String>) -> FilterError {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        FilterError::Syntax {
            line,
            column: before[start..].chars().count() + 1,
            what: what.into(),
        }
    }

    fn rest(&self) -> &'s str {
        &self.text[self.at..]
    }

    fn byte(&self, offset: usize) -> u8 {
        self.text.as_bytes().get(self.at + offset).copied().unwrap_or(0)
    }

    /// Skips bytes while the predicate holds. The predicate may hold for ASCII only.
    fn take_while(&mut self, mut pleases: impl FnMut(u8) -> bool) {
        while self.at < self.text.len() && pleases(self.byte(0)) {
            self.at += 1;
        }
    }

    fn skip_blank(&mut self) {
        loop {
            self.take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
            if self.byte(0) != b'#' {
                return;
            }
            self.skip_comment();
        }
    }

    /// Skips a comment. It ends with the line, unless a backslash escapes the line break.
    fn skip_comment(&mut self) {
        let mut chars = self.rest().char_indices().peekable();
        let mut escaped = false;
        let mut end = self.text.len();
        while let Some((offset, char)) = chars.next() {
            match char {
                '\\' => escaped = !escaped,
                '\r' if escaped && matches!(chars.peek(), Some((_, '\n'))) => {}
                '\n' | '\r' if !escaped => {
                    end = self.at + offset;
                    break;
                }
                _ => escaped = false,
            }
        }
        self.at = end;
    }

    /// The next token and the place of its beginning.
    pub(crate) fn token(&mut self) -> Result<(usize, Token<'s>), FilterError> {
        self.skip_blank();
        let start = self.at;
        let token = match self.byte(0) {
            0 if self.at >= self.text.len() => Token::End,
            byte if starts_name(byte) => self.name(),
            byte if byte.is_ascii_digit() => self.number(start)?,
            b'.' if starts_name(self.byte(1)) => {
                self.at += 1;
                self.take_while(in_name);
                Token::Field(&self.text[start + 1..self.at])
            }
            b'.' if self.byte(1).is_ascii_digit() => self.number(start)?,
            b'$' if starts_name(self.byte(1)) => {
                self.at += 1;
                self.name();
                Token::Variable(&self.text[start..self.at])
            }
            b'@' if in_name(self.byte(1)) => {
                self.at += 1;
                self.take_while(in_name);
                Token::Format(&self.text[start..self.at])
            }
            b'"' => {
                self.at += 1;
                Token::Quote
            }
            _ => self.sign(start)?,
        };
        Ok((start, token))
    }

    fn sign(&mut self, start: usize) -> Result<Token<'s>, FilterError> {
        let rest = self.rest();
        let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) else {
            let found = rest.chars().next().unwrap_or(' ');
            return Err(self.error(start, format!("unexpected {found:?}")));
        };
        self.at += sign.len();
        Ok(Token::Sign(sign))
    }

    fn name(&mut self) -> Token<'s> {
        let start = self.at;
        self.take_while(in_name);
        if self.byte(0) == b':' && self.byte(1) == b':' && starts_name(self.byte(2)) {
            self.at += 2;
            self.take_while(in_name);
        }
        let name = &self.text[start..self.at];
        if KEYWORDS.contains(&name) {
            Token::Keyword(name)
        } else {
            Token::Name(name)
        }
    }

    fn number(&mut self, start: usize) -> Result<Token<'s>, FilterError> {
        self.take_while(|byte| byte.is_ascii_digit());
        if self.byte(0) == b'.' {
            self.at += 1;
            self.take_while(|byte| byte.is_ascii_digit());
        }
        if matches!(self.byte(0), b'e' | b'E') {
            self.at += 1;
            if matches!(self.byte(0), b'+' | b'-') {
                self.at += 1;
            }
            if !self.byte(0).is_ascii_digit() {
                return Err(self.error(start, "a number whose exponent has no digits"));
            }
            self.take_while(|byte| byte.is_ascii_digit());
        }
        if starts_name(self.byte(0))
            || (self.byte(0) == b'.' && self.byte(1) != b'.' && self.text[start..self.at].contains('.'))
        {
            return Err(self.error(start, "a number that does not end where it should"));
        }
        Ok(Token::Number(&self.text[start..self.at]))
    }

    /// The next piece of the opened string.
    pub(crate) fn piece(&mut self) -> Result<Piece<'s>, FilterError> {
        let rest = self.rest();
        match rest.find(['"', '\\']) {
            None => Err(self.error(self.text.len(), "a string that is not closed")),
            Some(0) if rest.starts_with('"') => {
                self.at += 1;
                Ok(Piece::End)
            }
            Some(0) => self.escape(),
            Some(end) => {
                self.at += end;
                Ok(Piece::Text(&rest[..end]))
            }
        }
    }

    fn escape(&mut self) -> Result<Piece<'s>, FilterError> {
        let start = self.at;
        self.at += 2;
        let char = match self.text.as_bytes().get(start + 1) {
            Some(b'(') => return Ok(Piece::Splice),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(sign @ (b'"' | b'\\' | b'/')) => char::from(*sign),
            Some(b'u') => self.unicode(start)?,
            _ => return Err(self.error(start, "an escape that is none")),
        };
        Ok(Piece::Char(char))
    }

    /// Reads `\uXXXX`, and the second half of a surrogate pair with it. Half a pair alone is replaced by U+FFFD.
    fn unicode(&mut self, start: usize) -> Result<char, FilterError> {
        let Some(unit) = self.hex(self.at) else {
            return Err(self.error(start, "a unicode escape without its four digits"));
        };
        self.at += 4;
        if !(0xd800..0xe000).contains(&unit) {
            return Ok(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        let low = if self.rest().starts_with("\\u") {
            self.hex(self.at + 2)
        } else {
            None
        };
        match low {
            Some(low) if unit < 0xdc00 && (0xdc00..0xe000).contains(&low) => {
                self.at += 6;
                let code = 0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER))
            }
            _ => Ok(char::REPLACEMENT_CHARACTER),
        }
    }

    fn hex(&self, at: usize) -> Option<u32> {
        let digits = self.text.get(at..at + 4)?;
        digits
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit())
            .then(|| u32::from_str_radix(digits, 16).ok())?
    }
}
