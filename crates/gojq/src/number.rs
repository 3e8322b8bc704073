//! Numbers as in the original's engine: integers of any size, and floats.
//!
//! Literals and counts are integers. Every number of the input is a float, as in the original. Arithmetic with integers
//! is exact: they become big integers instead of wrapping. Must never panic: no overflow, no division by zero.

use std::cmp::Ordering;
use std::rc::Rc;

use num_bigint::BigInt;

/// A number.
#[derive(Debug, Clone)]
pub(crate) enum Num {
    Int(i64),
    Big(Rc<BigInt>),
    Float(f64),
}

/// The number of bits up to which an integer stays one. A larger one becomes a float.
const MAX_BITS: u64 = 1 << 14;

/// Two numbers of the same type.
enum Pair {
    Ints(i64, i64),
    Bigs(BigInt, BigInt),
    Floats(f64, f64),
}

impl Num {
    /// An integer for a length or an index.
    pub(crate) fn count(count: usize) -> Self {
        i64::try_from(count).map_or(Self::Float(f64::INFINITY), Self::Int)
    }

    /// Parses a literal, or the text of a number in JSON.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return text.parse().ok().map(Self::Float);
        }
        if let Ok(int) = text.parse() {
            return Some(Self::Int(int));
        }
        // The time of parsing grows with the square of the number of digits.
        if digits.len() > 4096 {
            return text.parse().ok().map(Self::Float);
        }
        text.parse().ok().map(Self::big)
    }

    fn big(big: BigInt) -> Self {
        if let Ok(int) = i64::try_from(&big) {
            Self::Int(int)
        } else if big.bits() > MAX_BITS {
            Self::Float(if big.sign() == num_bigint::Sign::Minus {
                f64::NEG_INFINITY
            } else {
                f64::INFINITY
            })
        } else {
            Self::Big(Rc::new(big))
        }
    }

    /// The nearest float.
    #[expect(clippy::cast_precision_loss, reason = "that is what the operation says")]
    pub(crate) fn float(&self) -> f64 {
        match self {
            Self::Int(int) => *int as f64,
            Self::Float(float) => *float,
            // The library's conversion rounds differently from the original's, which goes through text.
            Self::Big(big) => big.to_string().parse().unwrap_or(f64::NAN),
        }
    }

    /// The integer towards zero, or the nearest limit of the type.
    pub(crate) fn int(&self) -> i64 {
        match self {
            Self::Int(int) => *int,
            Self::Float(float) => whole(*float),
            Self::Big(big) if big.sign() == num_bigint::Sign::Minus => i64::MIN,
            Self::Big(_) => i64::MAX,
        }
    }

    fn pair(&self, other: &Self) -> Pair {
        match (self, other) {
            (Self::Int(left), Self::Int(right)) => Pair::Ints(*left, *right),
            (Self::Float(_), _) | (_, Self::Float(_)) => Pair::Floats(self.float(), other.float()),
            _ => Pair::Bigs(self.as_big(), other.as_big()),
        }
    }

    fn as_big(&self) -> BigInt {
        match self {
            Self::Int(int) => BigInt::from(*int),
            Self::Big(big) => BigInt::clone(big),
            Self::Float(float) => BigInt::from(whole(*float)),
        }
    }

    pub(crate) fn add(&self, other: &Self) -> Self {
        match self.pair(other) {
            Pair::Ints(left, right) => left
                .checked_add(right)
                .map_or_else(|| Self::big(BigInt::from(left) + right), Self::Int),
            Pair::Bigs(left, right) => Self::big(left + right),
            Pair::Floats(left, right) => Self::Float(left + right),
        }
    }

    pub(crate) fn subtract(&self, other: &Self) -> Self {
        match self.pair(other) {
            Pair::Ints(left, right) => left
                .checked_sub(right)
                .map_or_else(|| Self::big(BigInt::from(left) - right), Self::Int),
            Pair::Bigs(left, right) => Self::big(left - right),
            Pair::Floats(left, right) => Self::Float(left - right),
        }
    }

    pub(crate) fn multiply(&self, other: &Self) -> Self {
        match self.pair(other) {
            Pair::Ints(left, right) => left
                .checked_mul(right)
                .map_or_else(|| Self::big(BigInt::from(left) * right), Self::Int),
            Pair::Bigs(left, right) => Self::big(left * right),
            Pair::Floats(left, right) => Self::Float(left * right),
        }
    }

    /// The quotient; `None` for a division by zero.
    #[expect(clippy::cast_precision_loss, reason = "a quotient that is no integer is a float")]
    pub(crate) fn divide(&self, other: &Self) -> Option<Self> {
        Some(match self.pair(other) {
            Pair::Ints(_, 0) | Pair::Floats(_, 0.0) => return None,
            Pair::Ints(left, right) => match left.checked_rem(right) {
                Some(0) => left
                    .checked_div(right)
                    .map_or_else(|| Self::big(BigInt::from(left) / right), Self::Int),
                Some(_) => Self::Float(left as f64 / right as f64),
                None => Self::big(BigInt::from(left) / right),
            },
            Pair::Bigs(left, right) => {
                if right == BigInt::ZERO {
                    return None;
                }
                if &left % &right == BigInt::ZERO {
                    Self::big(left / right)
                } else {
                    Self::Float(self.float() / other.float())
                }
            }
            Pair::Floats(left, right) => Self::Float(left / right),
        })
    }

    /// The remainder; `None` for a divisor that is zero, or becomes zero as an integer.
    pub(crate) fn modulo(&self, other: &Self) -> Option<Self> {
        Some(match self.pair(other) {
            Pair::Ints(_, 0) => return None,
            Pair::Ints(left, right) => Self::Int(left.checked_rem(right).unwrap_or(0)),
            Pair::Bigs(left, right) => {
                if right == BigInt::ZERO {
                    return None;
                }
                Self::big(left % right)
            }
            Pair::Floats(left, right) => match whole(right) {
                0 => return None,
                _ if left.is_nan() || right.is_nan() => Self::Float(f64::NAN),
                right => Self::Int(whole(left).checked_rem(right).unwrap_or(0)),
            },
        })
    }

    pub(crate) fn negate(&self) -> Self {
        match self {
            Self::Int(int) => int
                .checked_neg()
                .map_or_else(|| Self::big(-BigInt::from(*int)), Self::Int),
            Self::Big(big) => Self::big(-BigInt::clone(big)),
            Self::Float(float) => Self::Float(-float),
        }
    }

    pub(crate) fn absolute(&self) -> Self {
        match self {
            Self::Float(float) => Self::Float(float.abs()),
            other if other.float() < 0.0 => other.negate(),
            other => other.clone(),
        }
    }

    /// Compares two numbers. A NaN is less than everything, even than itself.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        match self.pair(other) {
            Pair::Ints(left, right) => left.cmp(&right),
            Pair::Bigs(left, right) => left.cmp(&right),
            Pair::Floats(left, _) if left.is_nan() => Ordering::Less,
            Pair::Floats(left, right) => left.partial_cmp(&right).unwrap_or(Ordering::Greater),
        }
    }

    /// Prints the number as JSON: NaN as null, and infinite numbers as the largest ones.
    pub(crate) fn write(&self, out: &mut String) {
        match self {
            Self::Int(int) => out.push_str(&int.to_string()),
            Self::Big(big) => out.push_str(&big.to_string()),
            Self::Float(float) if float.is_nan() => out.push_str("null"),
            Self::Float(float) => write_float(float.clamp(f64::MIN, f64::MAX), out),
        }
    }
}

/// Converts to an integer. Numbers that do not fit become the nearest limit, and NaN the lower one.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the cast saturates, which is what is wanted"
)]
pub(crate) fn whole(float: f64) -> i64 {
    if float.is_nan() { i64::MIN } else { float as i64 }
}

/// Prints the shortest digits that read back as the same float, with an exponent if it is very small or very large.
fn write_float(float: f64, out: &mut String) {
    use std::fmt::Write as _;
    let size = float.abs();
    let written = if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let start = out.len();
        let written = write!(out, "{float:e}");
        if let Some(sign) = out[start..].find('e').map(|at| start + at + 1)
            && !out[sign..].starts_with('-')
        {
            out.insert(sign, '+');
        }
        written
    } else {
        write!(out, "{float}")
    };
    debug_assert!(written.is_ok(), "a string takes everything");
}
