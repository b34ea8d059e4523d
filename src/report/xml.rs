//! XML documents in memory.

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, Event};

/// A whole document, indented; `write` writes its root element.
pub fn document(write: impl FnOnce(&mut Writer<Vec<u8>>) -> std::io::Result<()>) -> String {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    // Writing to memory cannot fail.
    let _ = writer
        .write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))
        .and_then(|()| write(&mut writer));
    let mut text = String::from_utf8_lossy(&writer.into_inner()).into_owned();
    text.push('\n');
    text
}

/// Without the characters that XML 1.0 cannot hold, escaped or not.
pub fn text(text: &str) -> String {
    let held = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..);
    text.chars().filter(|&c| held(c)).collect()
}
