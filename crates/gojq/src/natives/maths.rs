//! Functions of numbers.

use jaq_core::Exn;

use super::{Cv, Outs, Row, budget, one, paid, unary, values};
use crate::number::Num;
use crate::value::wording as say;
use crate::value::{Res, Val};

pub(super) fn rows() -> Vec<Row> {
    let mut rows = of_one();
    rows.extend(of_many());
    rows.extend(tests());
    rows
}

fn float<'a>(name: &str, value: &Val<'a>) -> Res<'a, f64> {
    value.as_num().map(Num::float).ok_or_else(|| say::plain(name, value))
}

fn apply<'a>(cv: Cv<'a>, name: &str, function: fn(f64) -> f64) -> Outs<'a> {
    unary(cv, |input| {
        float(name, input).map(|number| Val::float(function(number)))
    })
}

fn of_one() -> Vec<Row> {
    vec![
        ("sin", values(0), |cv| apply(cv, "sin", f64::sin)),
        ("cos", values(0), |cv| apply(cv, "cos", f64::cos)),
        ("tan", values(0), |cv| apply(cv, "tan", f64::tan)),
        ("asin", values(0), |cv| apply(cv, "asin", f64::asin)),
        ("acos", values(0), |cv| apply(cv, "acos", f64::acos)),
        ("atan", values(0), |cv| apply(cv, "atan", f64::atan)),
        ("sinh", values(0), |cv| apply(cv, "sinh", f64::sinh)),
        ("cosh", values(0), |cv| apply(cv, "cosh", f64::cosh)),
        ("tanh", values(0), |cv| apply(cv, "tanh", f64::tanh)),
        ("asinh", values(0), |cv| apply(cv, "asinh", libm::asinh)),
        ("acosh", values(0), |cv| apply(cv, "acosh", libm::acosh)),
        ("atanh", values(0), |cv| apply(cv, "atanh", libm::atanh)),
        ("floor", values(0), |cv| apply(cv, "floor", f64::floor)),
        ("ceil", values(0), |cv| apply(cv, "ceil", f64::ceil)),
        ("round", values(0), |cv| apply(cv, "round", f64::round)),
        ("trunc", values(0), |cv| apply(cv, "trunc", f64::trunc)),
        ("nearbyint", values(0), |cv| {
            apply(cv, "nearbyint", f64::round_ties_even)
        }),
        ("rint", values(0), |cv| apply(cv, "rint", f64::round_ties_even)),
        ("significand", values(0), |cv| apply(cv, "significand", significand)),
        ("fabs", values(0), |cv| apply(cv, "fabs", f64::abs)),
        ("sqrt", values(0), |cv| apply(cv, "sqrt", f64::sqrt)),
        ("cbrt", values(0), |cv| apply(cv, "cbrt", f64::cbrt)),
        ("exp", values(0), |cv| apply(cv, "exp", f64::exp)),
        ("exp2", values(0), |cv| apply(cv, "exp2", f64::exp2)),
        ("exp10", values(0), |cv| apply(cv, "exp10", |number| pow(10.0, number))),
        ("expm1", values(0), |cv| apply(cv, "expm1", f64::exp_m1)),
        ("log", values(0), |cv| apply(cv, "log", f64::ln)),
        ("log2", values(0), |cv| apply(cv, "log2", f64::log2)),
        ("log10", values(0), |cv| apply(cv, "log10", f64::log10)),
        ("log1p", values(0), |cv| apply(cv, "log1p", f64::ln_1p)),
        ("logb", values(0), |cv| apply(cv, "logb", logb)),
        ("gamma", values(0), |cv| apply(cv, "gamma", gamma)),
        ("tgamma", values(0), |cv| apply(cv, "tgamma", gamma)),
        ("lgamma", values(0), |cv| apply(cv, "lgamma", libm::lgamma)),
        ("erf", values(0), |cv| apply(cv, "erf", libm::erf)),
        ("erfc", values(0), |cv| apply(cv, "erfc", libm::erfc)),
        ("j0", values(0), |cv| apply(cv, "j0", libm::j0)),
        ("j1", values(0), |cv| apply(cv, "j1", libm::j1)),
        ("y0", values(0), |cv| apply(cv, "y0", libm::y0)),
        ("y1", values(0), |cv| apply(cv, "y1", libm::y1)),
        ("frexp", values(0), |cv| {
            unary(cv, |input| {
                let (fraction, exponent) = libm::frexp(float("frexp", input)?);
                Val::array(vec![Val::float(fraction), Val::int(i64::from(exponent))])
            })
        }),
        ("modf", values(0), |cv| {
            unary(cv, |input| {
                let (fraction, whole) = modf(float("modf", input)?);
                Val::array(vec![Val::float(fraction), Val::float(whole)])
            })
        }),
    ]
}

fn apply_two<'a>(mut cv: Cv<'a>, name: &str, function: fn(f64, f64) -> f64) -> Outs<'a> {
    let (left, right) = (cv.0.pop_var(), cv.0.pop_var());
    let both = float(name, &left).and_then(|left| float(name, &right).map(|right| (left, right)));
    one(paid(
        budget(&cv),
        both.map(|(left, right)| Val::float(function(left, right))),
    ))
}

fn of_many() -> Vec<Row> {
    vec![
        ("atan2", values(2), |cv| apply_two(cv, "atan2", f64::atan2)),
        ("copysign", values(2), |cv| apply_two(cv, "copysign", f64::copysign)),
        ("drem", values(2), |cv| apply_two(cv, "drem", drem)),
        ("fdim", values(2), |cv| apply_two(cv, "fdim", libm::fdim)),
        ("fmax", values(2), |cv| {
            apply_two(cv, "fmax", |left, right| extreme(left, right, f64::max))
        }),
        ("fmin", values(2), |cv| {
            apply_two(cv, "fmin", |left, right| extreme(left, right, f64::min))
        }),
        ("fmod", values(2), |cv| {
            apply_two(cv, "fmod", |left, right| left % right)
        }),
        ("hypot", values(2), |cv| apply_two(cv, "hypot", f64::hypot)),
        ("jn", values(2), |cv| {
            apply_two(cv, "jn", |order, number| libm::jn(small(order), number))
        }),
        ("yn", values(2), |cv| {
            apply_two(cv, "yn", |order, number| libm::yn(small(order), number))
        }),
        ("nextafter", values(2), |cv| apply_two(cv, "nextafter", libm::nextafter)),
        ("nexttoward", values(2), |cv| {
            apply_two(cv, "nexttoward", libm::nextafter)
        }),
        ("remainder", values(2), |cv| apply_two(cv, "remainder", libm::remainder)),
        ("ldexp", values(2), |cv| apply_two(cv, "ldexp", scale)),
        ("scalb", values(2), |cv| apply_two(cv, "scalb", scale)),
        ("scalbln", values(2), |cv| apply_two(cv, "scalbln", scale)),
        ("pow", values(2), |cv| apply_two(cv, "pow", pow)),
        ("fma", values(3), fma),
    ]
}

fn fma(mut cv: Cv<'_>) -> Outs<'_> {
    let args = [cv.0.pop_var(), cv.0.pop_var(), cv.0.pop_var()];
    let mut numbers = [0.0; 3];
    for (number, arg) in numbers.iter_mut().zip(&args) {
        *number = match float("fma", arg) {
            Ok(float) => float,
            Err(error) => return one(Err(Exn::from(error))),
        };
    }
    one(Ok(Val::float(numbers[0].mul_add(numbers[1], numbers[2]))))
}

fn tests() -> Vec<Row> {
    vec![
        ("infinite", values(0), |cv| unary(cv, |_| Ok(Val::float(f64::INFINITY)))),
        ("nan", values(0), |cv| unary(cv, |_| Ok(Val::float(f64::NAN)))),
        ("isfinite", values(0), |cv| {
            unary(cv, |input| {
                Ok(Val::Bool(float("", input).is_ok_and(|float| !float.is_infinite())))
            })
        }),
        ("isinfinite", values(0), |cv| {
            unary(cv, |input| Ok(Val::Bool(float("", input).is_ok_and(f64::is_infinite))))
        }),
        ("isnan", values(0), |cv| {
            unary(cv, |input| match input {
                Val::Null => Ok(Val::Bool(false)),
                other => float("isnan", other).map(|float| Val::Bool(float.is_nan())),
            })
        }),
        ("isnormal", values(0), |cv| {
            unary(cv, |input| Ok(Val::Bool(float("", input).is_ok_and(f64::is_normal))))
        }),
    ]
}

/// Limits a float to integers that the functions of the library can take as an order or an exponent.
#[expect(clippy::cast_possible_truncation, reason = "clamped to what fits")]
fn small(float: f64) -> i32 {
    float.clamp(-10_000.0, 10_000.0) as i32
}

fn scale(number: f64, exponent: f64) -> f64 {
    libm::ldexp(number, small(exponent))
}

/// One to any power is one, even if the exponent is NaN.
fn pow(base: f64, exponent: f64) -> f64 {
    base.powf(exponent)
}

fn significand(number: f64) -> f64 {
    const SIGN_AND_FRACTION: u64 = 0x800f_ffff_ffff_ffff;
    if number == 0.0 || !number.is_finite() {
        return number;
    }
    f64::from_bits((number.to_bits() & SIGN_AND_FRACTION) | 1.0_f64.to_bits())
}

fn logb(number: f64) -> f64 {
    if number == 0.0 {
        f64::NEG_INFINITY
    } else if number.is_infinite() {
        f64::INFINITY
    } else if number.is_nan() {
        number
    } else {
        f64::from(libm::ilogb(number))
    }
}

/// The gamma function is not defined for negative integers.
fn gamma(number: f64) -> f64 {
    if number < 0.0 && number.fract() == 0.0 {
        f64::NAN
    } else {
        libm::tgamma(number)
    }
}

fn modf(number: f64) -> (f64, f64) {
    if number.is_infinite() {
        return (f64::NAN, number);
    }
    let whole = number.trunc();
    ((number - whole).copysign(number), whole)
}

/// A zero has the sign of the dividend.
fn drem(left: f64, right: f64) -> f64 {
    let rest = libm::remainder(left, right);
    if rest == 0.0 { rest.copysign(left) } else { rest }
}

/// If one of the numbers is NaN, the result is NaN, unlike in Rust.
fn extreme(left: f64, right: f64, pick: fn(f64, f64) -> f64) -> f64 {
    if left.is_nan() || right.is_nan() {
        f64::NAN
    } else {
        pick(left, right)
    }
}
