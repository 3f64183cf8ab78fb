//! Wraps text into lines, which SVG does not do by itself.

/// The words of a text in lines of about `letters` letters. A longer word has a line of its own.
pub(super) fn lines(text: &str, letters: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let fits = |line: &String| (line.chars().count() + 1 + word.chars().count()) as f64 <= letters;
        match lines.last_mut().filter(|line| fits(line)) {
            Some(line) => *line = format!("{line} {word}"),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_before_the_word_that_is_too_much() {
        assert_eq!(lines("one two three", 7.0), ["one two", "three"]);
        assert_eq!(lines("one abcdefghijkl two", 5.0), ["one", "abcdefghijkl", "two"]);
        assert_eq!(lines("  ", 5.0), Vec::<String>::new());
    }
}
