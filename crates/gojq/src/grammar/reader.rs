//! Takes tokens one by one. Its errors name the expected token.

use super::{Grammar, Parsed};
use crate::lexer::Token;

impl<'s> Grammar<'s> {
    pub(super) fn peek(&mut self) -> Parsed<Token<'s>> {
        if let Some((_, token)) = self.ahead {
            return Ok(token);
        }
        let (at, token) = self.lexer.token()?;
        self.ahead = Some((at, token));
        Ok(token)
    }

    pub(super) fn bump(&mut self) -> Parsed<Token<'s>> {
        let token = self.peek()?;
        if let Some((at, _)) = self.ahead.take() {
            self.taken = at;
        }
        Ok(token)
    }

    /// The error for the token that was just taken. `wanted` is the expected one.
    pub(super) fn put_back<T>(&mut self, token: Token<'s>, wanted: &str) -> Parsed<T> {
        self.ahead = Some((self.taken, token));
        self.unexpected(wanted)
    }

    pub(super) fn fail<T>(&self, what: impl Into<String>) -> Parsed<T> {
        let at = self.ahead.map_or_else(|| self.lexer.at(), |(at, _)| at);
        Err(self.lexer.error(at, what))
    }

    pub(super) fn unexpected<T>(&mut self, wanted: &str) -> Parsed<T> {
        let found = match self.peek()? {
            Token::End => "the end".to_owned(),
            Token::Quote => "a string".to_owned(),
            Token::Name(word)
            | Token::Keyword(word)
            | Token::Variable(word)
            | Token::Format(word)
            | Token::Number(word)
            | Token::Sign(word) => format!("`{word}`"),
            Token::Field(word) => format!("`.{word}`"),
        };
        self.fail(format!("expected {wanted}, found {found}"))
    }

    pub(super) fn eat(&mut self, sign: &str) -> Parsed<bool> {
        let found = self.peek()? == Token::Sign(sign);
        if found {
            self.ahead = None;
        }
        Ok(found)
    }

    pub(super) fn eat_keyword(&mut self, word: &str) -> Parsed<bool> {
        let found = self.peek()? == Token::Keyword(word);
        if found {
            self.ahead = None;
        }
        Ok(found)
    }

    pub(super) fn expect(&mut self, sign: &str) -> Parsed<()> {
        if self.eat(sign)? {
            Ok(())
        } else {
            self.unexpected(&format!("`{sign}`"))
        }
    }

    pub(super) fn expect_keyword(&mut self, word: &str) -> Parsed<()> {
        if self.eat_keyword(word)? {
            Ok(())
        } else {
            self.unexpected(&format!("`{word}`"))
        }
    }

    pub(super) fn end(&mut self) -> Parsed<()> {
        if self.peek()? == Token::End {
            Ok(())
        } else {
            self.unexpected("an operator or the end")
        }
    }
}
