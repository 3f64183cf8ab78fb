//! Text into markup.

/// Text as the content of an element or the value of an attribute in quotes, in HTML and in XML. Control characters,
/// which XML does not allow, become U+FFFD.
pub(super) fn text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(letter),
            _ if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_is_taken_for_markup() {
        assert_eq!(text("<a b='&\"'>"), "&lt;a b=&#39;&amp;&quot;&#39;&gt;");
        assert_eq!(text("\0\u{1b}\u{85}\n"), "\u{fffd}\u{fffd}\u{fffd}\n");
    }
}
