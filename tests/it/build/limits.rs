use super::{body, body_of, raw, show};

#[test]
fn deep_nesting_is_unknown() {
    for (open, close) in [("(", ")"), ("f(", ")"), ("a[", "]"), ("!", "")] {
        let text = format!("x = {}1{};", open.repeat(5000), close.repeat(5000));
        assert!(body(&text).contains("?nested too deeply"), "{open}");
    }
    let text = format!("{}{}", "{ f(); ".repeat(400), "}".repeat(400));
    assert!(body(&text).contains("?nested too deeply"));
}

#[test]
fn long_chains_are_read() {
    let chain = body(&format!("x = 1{};", " + 1".repeat(400)));
    assert_eq!(chain.matches("Add(").count(), 400);
    let chain = body(&format!("if (a) b();{}", " else if (a) b();".repeat(300)));
    assert_eq!(chain.matches("else if").count(), 300);
    assert!(body(&format!("x = 1{};", " + 1".repeat(100_000))).contains("?nested too deeply"));
}

#[test]
fn any_prefix_of_a_file_is_read() {
    let text = include_str!("../../../fixtures/lower/first.cu");
    for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
        raw(&text[..end]);
    }
    let body = body_of(&raw(text));
    assert!(!body.iter().map(show::stmt).any(|stmt| stmt.starts_with('?')));
}
