use proptest::prelude::*;
use serde_json::json;

use super::*;

fn quantity(text: &str) -> Quantity {
    text.parse().unwrap()
}

/// Text, whole units, milli-units: what `ParseQuantity`, `Value()` and `MilliValue()` of apimachinery 0.37.2 answer.
const AS_GO_READS_THEM: &[(&str, i64, i64)] = &[
    ("0", 0, 0),
    ("1", 1, 1000),
    ("+1", 1, 1000),
    ("-1", -1, -1000),
    ("1.", 1, 1000),
    ("1.G", 1_000_000_000, 1_000_000_000_000),
    (".5", 1, 500),
    ("-.5", -1, -500),
    ("1.5", 2, 1500),
    ("100m", 1, 100),
    ("1u", 1, 1),
    ("1n", 1, 1),
    ("0.1n", 1, 1),
    ("1.5n", 1, 1),
    ("1k", 1000, 1_000_000),
    ("1Ki", 1024, 1_024_000),
    ("1Mi", 1_048_576, 1_048_576_000),
    ("1Gi", 1_073_741_824, 1_073_741_824_000),
    ("1Ti", 1_099_511_627_776, 1_099_511_627_776_000),
    ("1Pi", 1_125_899_906_842_624, 1_125_899_906_842_624_000),
    ("1P", 1_000_000_000_000_000, 1_000_000_000_000_000_000),
    ("1e3", 1000, 1_000_000),
    ("1E3", 1000, 1_000_000),
    ("1E+3", 1000, 1_000_000),
    ("1e-3", 1, 1),
    ("1e00003", 1000, 1_000_000),
    ("1.5e1", 15, 15_000),
    ("1e-9", 1, 1),
    ("1e-10", 1, 1),
    ("1e-100", 1, 1),
    ("0e100", 0, 0),
    ("0Ei", 0, 0),
    ("0.5Ki", 512, 512_000),
    ("0.1Ki", 103, 102_400),
    ("0.0001Ki", 1, 103),
    ("0.0000000000001Ki", 1, 1),
    ("0.000000001Gi", 2, 1074),
    ("1.0000000001Ki", 1025, 1_024_001),
    ("00001", 1, 1000),
    ("0000.1", 1, 100),
    ("1.0000000000000000000001", 2, 1001),
    (".001m", 1, 1),
    (".0001m", 1, 1),
    ("123456789.123456789", 123_456_790, 123_456_789_124),
];

#[test]
fn texts_are_read_as_go_reads_them() {
    for (text, units, millis) in AS_GO_READS_THEM {
        assert_eq!(quantity(text).units_ceil(), *units, "{text}");
        assert_eq!(quantity(text).millis_ceil(), *millis, "{text}");
    }
}

#[test]
fn what_go_refuses_is_refused_with_the_text_and_what_would_be_right() {
    for text in [
        "",
        " 1",
        "1 ",
        "1K",
        "1e",
        "1E-",
        "1e+",
        "1e3k",
        "1.1.1",
        "1i",
        "0.1mi",
        "1Ee",
        "1EE3",
        "12Ee3",
        "0x1",
        "1_000",
        "1e3.5",
        "1nn",
        "1eE",
        "+",
        ".",
        "m",
        "Pi",
        "1ki",
        "1Kb",
        "--1",
        "+-1",
        "NaN",
        "inf",
        "½",
        "1½",
        "-½",
        "1e99999999999999999999",
    ] {
        let error = Quantity::from_str(text).unwrap_err().to_string();
        assert!(error.contains(text) && error.contains("right would be"), "{error}");
    }
}

#[test]
fn spellings_of_one_amount_are_equal() {
    for (one, other) in [
        ("1000m", "1"),
        ("1Ki", "1024"),
        ("1e3", "1k"),
        ("12E", "12e18"),
        ("0.5", "500m"),
        ("1000000n", "1m"),
        ("1024Gi", "1Ti"),
        ("-0", "0"),
    ] {
        assert_eq!(quantity(one), quantity(other), "{one} and {other}");
    }
}

#[test]
fn beyond_int64_the_integers_stop_at_its_ends_where_go_wraps_around() {
    assert_eq!(quantity("12E").units_ceil(), i64::MAX);
    assert_eq!(quantity("1E").millis_ceil(), i64::MAX);
    assert_eq!(quantity("-12E").units_ceil(), i64::MIN);
    assert_eq!(quantity("1e30").units_ceil(), i64::MAX);
    assert_eq!(quantity("1e9000000000000000000").units_ceil(), i64::MAX);
    assert_eq!(quantity("1e-9000000000000000000").units_ceil(), 1);
    assert_eq!(quantity("9223372036854775807").units_ceil(), i64::MAX);
}

#[test]
fn binary_quantities_are_capped_at_two_to_the_63_less_one() {
    for text in [
        "8Ei",
        "9.5Ei",
        "9223372036854775807Ki",
        "99999999999999999999999999999999999999999Ei",
    ] {
        assert_eq!(quantity(text), Quantity::from_units(i64::MAX), "{text}");
    }
    assert_eq!(quantity("-9Ei"), Quantity::from_units(-i64::MAX));
    assert_eq!(quantity("7Ei").units_ceil(), 8_070_450_532_247_928_832);
}

/// Case 99.
#[test]
fn a_number_and_a_string_are_the_same_quantity() {
    for (value, units, millis) in [
        (json!("8"), 8, 8000),
        (json!(8), 8, 8000),
        (json!(1.5), 2, 1500),
        (json!(0.1), 1, 100),
        (json!(-2), -2, -2000),
        (json!(1e3), 1000, 1_000_000),
        (json!(1e20), i64::MAX, i64::MAX),
        (json!(u64::MAX), i64::MAX, i64::MAX),
        (json!(" 1k "), 1000, 1_000_000),
        (json!(null), 0, 0),
    ] {
        let read = Quantity::from_json(&value).unwrap();
        assert_eq!((read.units_ceil(), read.millis_ceil()), (units, millis), "{value}");
        assert_eq!(
            serde_json::from_value::<Quantity>(value.clone()).unwrap(),
            read,
            "{value}"
        );
        assert_eq!(
            serde_json::from_str::<Quantity>(&value.to_string()).unwrap(),
            read,
            "{value}"
        );
    }
    for value in [json!(true), json!([]), json!({}), json!("x"), json!("")] {
        assert!(Quantity::from_json(&value).is_err(), "{value}");
        assert!(serde_json::from_value::<Quantity>(value).is_err());
    }
}

/// The same rules a second way: the number as a fraction of two integers.
fn expected_nanos(whole: u32, fraction: &str, suffix: &str) -> i128 {
    let places = u32::try_from(fraction.len()).unwrap();
    let (numerator, denominator): (i128, i128) = match suffix {
        "n" => (1, 1_000_000_000),
        "u" => (1, 1_000_000),
        "m" => (1, 1000),
        "k" | "e3" | "E+3" => (1000, 1),
        "M" => (1_000_000, 1),
        "G" => (1_000_000_000, 1),
        "Ki" => (1 << 10, 1),
        "Mi" => (1 << 20, 1),
        "Gi" => (1 << 30, 1),
        _ => (1, 1),
    };
    let digits = i128::from(whole) * 10_i128.pow(places) + fraction.parse::<i128>().unwrap_or(0);
    let top = digits * numerator * 1_000_000_000;
    let bottom = 10_i128.pow(places) * denominator;
    (top + bottom - 1) / bottom
}

proptest! {
    #[test]
    fn any_text_is_a_quantity_or_an_error_and_never_a_panic(text in "\\PC{0,40}|[+-]?[0-9.]{0,50}[eEinumkKMGTP]{0,3}[-+]?[0-9]{0,20}") {
        if let Ok(read) = Quantity::from_str(&text) {
            let (_, _) = (read.units_ceil(), read.millis_ceil());
        }
    }

    #[test]
    fn the_value_is_the_fraction_rounded_up_to_a_nano_unit(
        negative: bool,
        whole in 0_u32..2_000_000,
        fraction in "[0-9]{0,12}",
        suffix in prop::sample::select(vec!["", "n", "u", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3", "E+3"]),
    ) {
        let sign = if negative { "-" } else { "" };
        let read = quantity(&format!("{sign}{whole}.{fraction}{suffix}"));
        let expected = expected_nanos(whole, &fraction, suffix);
        prop_assert_eq!(read.nanos, if negative { -expected } else { expected });
    }

    #[test]
    fn what_is_printed_reads_back_as_the_same_quantity(nanos in prop_oneof![any::<i64>().prop_map(i128::from), any::<i128>()]) {
        let written = Quantity { nanos };
        let read = quantity(&written.to_string());
        // i128::MIN has no positive twin to be read as.
        prop_assert!(read == written || nanos == i128::MIN);
    }

    #[test]
    fn order_is_that_of_the_numbers(a: i32, b: i32, small: bool) {
        let text = |n: i32| if small { format!("{n}m") } else { format!("{n}Ki") };
        prop_assert_eq!(quantity(&text(a)).cmp(&quantity(&text(b))), a.cmp(&b));
    }

    #[test]
    fn rounding_never_gives_less_than_was_asked(millis in 0_i64..i64::MAX / 2) {
        let read = quantity(&format!("{millis}m"));
        prop_assert_eq!(read.millis_ceil(), millis);
        prop_assert!(read <= Quantity::from_units(read.units_ceil()));
        prop_assert!(read.units_ceil() - 1 < millis / 1000 + 1);
    }
}
