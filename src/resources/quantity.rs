//! Exact quantities.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer, Unexpected, Visitor};
use serde_json::Value;

/// Nano-units in one unit.
const UNIT: i128 = 1_000_000_000;
/// Nano-units in one milli-unit.
const MILLI: i128 = 1_000_000;
/// A binary quantity is capped here (`maxAllowed` in `k8s.io/apimachinery/pkg/api/resource`).
const BINARY_MAX: i128 = (i64::MAX as i128) * UNIT;

/// A Kubernetes quantity, exact to the nano-unit, with the grammar and the rounding of `resource.ParseQuantity`
/// (`k8s.io/apimachinery/pkg/api/resource/quantity.go`).
///
/// Go keeps decimal quantities of any size; here they end at ±2^127 nano-units (1.7e29 units), twenty orders above what a node holds. A float would lose
/// the very thing that fits are decided on, and Go's mix of `int64` and big decimals is only there for speed. A text without a digit is refused:
/// Go takes `m` for 0 and refuses `Pi`, by which of its two ways the text happens to go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity {
    nanos: i128,
}

/// A text that is no quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a quantity: {why}; right would be 500m, 1.5, 64Gi or 1e3")]
pub struct QuantityError {
    text: String,
    why: &'static str,
}

/// What a suffix multiplies by.
#[derive(Debug, Clone, Copy)]
enum Scale {
    /// A power of ten.
    Ten(i64),
    /// A power of two.
    Two(u32),
}

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self { nanos: 0 };

    /// A number of whole units.
    pub const fn from_units(units: i64) -> Self {
        Self {
            nanos: units as i128 * UNIT,
        }
    }

    /// A number of milli-units.
    pub const fn from_millis(millis: i64) -> Self {
        Self {
            nanos: millis as i128 * MILLI,
        }
    }

    /// Milli-units, rounded up (away from zero as `Quantity.MilliValue` does), capped at what `i64` holds.
    pub fn millis_ceil(self) -> i64 {
        ceil(self.nanos, MILLI)
    }

    /// Whole units, rounded up (away from zero as `Quantity.Value` does), capped at what `i64` holds.
    pub fn units_ceil(self) -> i64 {
        ceil(self.nanos, UNIT)
    }

    /// True for a whole number of units.
    pub fn is_whole(self) -> bool {
        self.nanos % UNIT == 0
    }

    /// True below zero.
    pub fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// The sum, capped.
    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        Self {
            nanos: self.nanos.saturating_add(other.nanos),
        }
    }

    /// A quantity as it stands in JSON: a string, a number, or null for zero (`Quantity.UnmarshalJSON`).
    pub fn from_json(value: &Value) -> Result<Self, QuantityError> {
        match value {
            Value::Null => Ok(Self::ZERO),
            Value::String(text) => text.trim().parse(),
            Value::Number(number) => number.to_string().parse(),
            other => Err(QuantityError {
                text: other.to_string(),
                why: "it is neither a string nor a number",
            }),
        }
    }
}

fn ceil(nanos: i128, unit: i128) -> i64 {
    let whole = nanos / unit;
    let rounded = if nanos % unit == 0 {
        whole
    } else {
        whole + nanos.signum()
    };
    i64::try_from(rounded).unwrap_or(if rounded < 0 { i64::MIN } else { i64::MAX })
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let error = |why| QuantityError {
            text: text.chars().take(64).collect(),
            why,
        };
        if text.is_empty() {
            return Err(error("it is empty"));
        }
        let (negative, unsigned) = match text.as_bytes()[0] {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let (whole, rest) = split_digits(unsigned);
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), split_digits);
        if whole.is_empty() && fraction.is_empty() {
            return Err(error("it has no digits"));
        }
        let scale = scale(suffix).ok_or_else(|| {
            error(if suffix.starts_with(['e', 'E']) {
                "its exponent is not an integer"
            } else {
                "its suffix is none of n u m k M G T P E Ki Mi Gi Ti Pi Ei or an exponent"
            })
        })?;
        let nanos = match scale {
            Scale::Ten(exponent) => nanos_of(whole, fraction, 1, exponent),
            Scale::Two(exponent) => nanos_of(whole, fraction, 1_i128 << exponent, 0).min(BINARY_MAX),
        };
        Ok(Self {
            nanos: if negative { -nanos } else { nanos },
        })
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

fn scale(suffix: &str) -> Option<Scale> {
    Some(match suffix {
        "n" => Scale::Ten(-9),
        "u" => Scale::Ten(-6),
        "m" => Scale::Ten(-3),
        "" => Scale::Ten(0),
        "k" => Scale::Ten(3),
        "M" => Scale::Ten(6),
        "G" => Scale::Ten(9),
        "T" => Scale::Ten(12),
        "P" => Scale::Ten(15),
        "E" => Scale::Ten(18),
        "Ki" => Scale::Two(10),
        "Mi" => Scale::Two(20),
        "Gi" => Scale::Two(30),
        "Ti" => Scale::Two(40),
        "Pi" => Scale::Two(50),
        "Ei" => Scale::Two(60),
        _ => Scale::Ten(suffix.strip_prefix(['e', 'E'])?.parse::<i64>().ok()?),
    })
}

/// `whole.fraction × factor × 10^exponent` in nano-units, rounded away from zero, capped at `i128::MAX`.
fn nanos_of(whole: &str, fraction: &str, factor: i128, exponent: i64) -> i128 {
    let whole = whole.trim_start_matches('0');
    let fraction = fraction.trim_end_matches('0');
    // The number is 0.<digits> × 10^point; trimmed, so that `digits` is as long as the number is precise.
    let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|b| b - b'0').collect();
    let mut point = i64::try_from(whole.len()).unwrap_or(i64::MAX);
    let leading = digits.iter().take_while(|d| **d == 0).count();
    digits.drain(..leading);
    if digits.is_empty() {
        return 0;
    }
    point -= i64::try_from(leading).unwrap_or(i64::MAX);
    // Nano-units: nine more places before the point.
    let places = point.saturating_add(exponent).saturating_add(9);
    multiply(&digits, places, factor)
}

/// `0.<digits> × 10^places × factor`, rounded up. `digits` begins with a digit other than 0.
fn multiply(digits: &[u8], places: i64, factor: i128) -> i128 {
    // 10^39 is above i128::MAX.
    if places > 39 {
        return i128::MAX;
    }
    let length = i64::try_from(digits.len()).unwrap_or(i64::MAX);
    if factor == 1 {
        let mut value = 0_i128;
        for place in 0..places {
            let digit = usize::try_from(place)
                .ok()
                .and_then(|i| digits.get(i))
                .copied()
                .unwrap_or(0);
            value = match value.checked_mul(10).and_then(|v| v.checked_add(i128::from(digit))) {
                Some(value) => value,
                None => return i128::MAX,
            };
        }
        // Whatever lies below a nano-unit counts as one.
        return if length > places.max(0) {
            value.saturating_add(1)
        } else {
            value
        };
    }
    // A binary factor brings digits below the nano-unit back above it: multiply first, digit by digit from the last, then cut.
    let mut product: Vec<u8> = Vec::with_capacity(digits.len() + 40);
    let mut carry = 0_i128;
    for digit in digits.iter().rev() {
        carry += i128::from(*digit) * factor;
        product.push(u8::try_from(carry % 10).unwrap_or(0));
        carry /= 10;
    }
    while carry > 0 {
        product.push(u8::try_from(carry % 10).unwrap_or(0));
        carry /= 10;
    }
    product.reverse();
    let grown = i64::try_from(product.len()).unwrap_or(i64::MAX) - length;
    let end = product.iter().rposition(|d| *d != 0).map_or(0, |i| i + 1);
    let start = product.iter().take_while(|d| **d == 0).count();
    let shifted = i64::try_from(start).unwrap_or(i64::MAX);
    multiply(&product[start..end], places + grown - shifted, 1)
}

impl fmt::Display for Quantity {
    /// Decimal, with the largest suffix that keeps the number whole: `1500m`, `2`, `64G`. What is printed reads back as the same quantity.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SUFFIXES: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
        if self.nanos == 0 {
            return f.write_str("0");
        }
        let mut number = self.nanos;
        let mut suffix = 0;
        while number % 1000 == 0 && suffix + 1 < SUFFIXES.len() {
            number /= 1000;
            suffix += 1;
        }
        write!(f, "{number}{}", SUFFIXES[suffix])
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Quantity;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity, as a string or a number")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
                text.trim().parse().map_err(E::custom)
            }

            fn visit_i64<E: de::Error>(self, units: i64) -> Result<Quantity, E> {
                Ok(Quantity::from_units(units))
            }

            fn visit_u64<E: de::Error>(self, units: u64) -> Result<Quantity, E> {
                Ok(Quantity {
                    nanos: i128::from(units) * UNIT,
                })
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Quantity, E> {
                // The shortest text that is this float is what was written, as far as a float can hold it.
                number
                    .to_string()
                    .parse()
                    .map_err(|_| E::invalid_value(Unexpected::Float(number), &self))
            }

            fn visit_unit<E: de::Error>(self) -> Result<Quantity, E> {
                Ok(Quantity::ZERO)
            }
        }

        deserializer.deserialize_any(Text)
    }
}

#[cfg(test)]
mod tests;
