//! Numbers and characters.

use crate::ir::ast::ExprKind;

/// `12'000u`, `0x1F`, `0b101`, `017`, `1.5f`, `0x1p-3`.
pub(super) fn number(text: &str) -> ExprKind {
    let digits: String = text.chars().filter(|c| *c != '\'').collect::<String>().to_ascii_lowercase();
    let hex = digits.strip_prefix("0x");
    let float = match hex {
        Some(hex) => hex.contains(['.', 'p']),
        None => digits.contains(['.', 'e']) && !digits.starts_with("0b"),
    };
    let value = if float { float_value(&digits) } else { int_value(&digits) };
    value.unwrap_or(ExprKind::Unknown("number"))
}

fn float_value(text: &str) -> Option<ExprKind> {
    let body = text.trim_end_matches(['f', 'l']);
    let double = !text.ends_with('f') || body.len() == text.len();
    let value = match body.strip_prefix("0x") {
        Some(hex) => hex_float(hex)?,
        None => body.parse().ok()?,
    };
    // A `float` literal holds what a float can.
    Some(ExprKind::Float { value: if double { value } else { f64::from(value as f32) }, double })
}

fn hex_float(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once('p').unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut value = 0.0;
    for digit in whole.chars() {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let mut scale = 1.0;
    for digit in fraction.chars() {
        scale /= 16.0;
        value += f64::from(digit.to_digit(16)?) * scale;
    }
    Some(value * 2f64.powi(exponent.parse().ok()?))
}

fn int_value(text: &str) -> Option<ExprKind> {
    let body = text.trim_end_matches(['u', 'l', 'z']);
    let suffix = text.get(body.len()..)?;
    let (digits, radix) = if let Some(hex) = body.strip_prefix("0x") {
        (hex, 16)
    } else if let Some(binary) = body.strip_prefix("0b") {
        (binary, 2)
    } else if body.len() > 1 && body.starts_with('0') {
        (body, 8)
    } else {
        (body, 10)
    };
    let value = u64::from_str_radix(digits, radix).ok()?;
    // C++ [lex.icon]: the first type of int, (unsigned,) long, (unsigned long) that holds the value.
    let mut unsigned = suffix.contains('u');
    let mut long = suffix.contains(['l', 'z']);
    if !long && value > i32::MAX as u64 {
        let fits_unsigned = (unsigned || radix != 10) && value <= u64::from(u32::MAX);
        unsigned |= fits_unsigned;
        long = !fits_unsigned;
    }
    unsigned |= value > i64::MAX as u64;
    Some(ExprKind::Int { value, unsigned, long })
}

/// `'a'`, `'\n'`, `'\x41'`, `L'a'`; several characters are one number, as compilers have it.
pub(super) fn character(text: &str) -> ExprKind {
    let Some((_, quoted)) = text.split_once('\'') else { return ExprKind::Unknown("character") };
    let mut rest = quoted.strip_suffix('\'').unwrap_or(quoted);
    let (mut value, mut count) = (0i64, 0);
    while let Some((code, after)) = one_character(rest) {
        value = if count == 0 { code } else { (value << 8) | (code & 0xff) };
        (rest, count) = (after, count + 1);
    }
    if count == 0 { ExprKind::Unknown("character") } else { ExprKind::Char(value) }
}

fn one_character(text: &str) -> Option<(i64, &str)> {
    let mut chars = text.chars();
    let first = chars.next()?;
    if first != '\\' {
        return Some((i64::from(u32::from(first)), chars.as_str()));
    }
    let escape = chars.next()?;
    let rest = chars.as_str();
    let simple = |value: i64| Some((value, rest));
    match escape {
        'n' => simple(10),
        't' => simple(9),
        'r' => simple(13),
        'a' => simple(7),
        'b' => simple(8),
        'f' => simple(12),
        'v' => simple(11),
        'x' => Some(digits(rest, 16, 8)),
        'u' => Some(digits(rest, 16, 4)),
        '0'..='7' => Some(digits(text.get(1..)?, 8, 3)),
        other => simple(i64::from(u32::from(other))),
    }
}

fn digits(text: &str, radix: u32, most: usize) -> (i64, &str) {
    let (mut value, mut used) = (0i64, 0);
    for digit in text.chars().take(most).map_while(|c| c.to_digit(radix)) {
        value = value * i64::from(radix) + i64::from(digit);
        used += 1;
    }
    (value, text.get(used..).unwrap_or(""))
}
