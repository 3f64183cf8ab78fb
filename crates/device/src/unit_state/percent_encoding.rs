//! Names in places that forbid some characters: file names, and fields between spaces.

/// Encodes `name` in lower-case letters, digits, `-`, `.`, `:` and `%`; every other byte becomes a per cent sign and
/// two hexadecimal digits. Different names stay different.
pub(super) fn encode(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.:".contains(&byte);
    let encoded = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02x}") };
    name.bytes().map(encoded).collect()
}

/// Decodes a text; `None` if no name encodes to it.
pub(super) fn decode(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(str::from_utf8(&digits).ok()?, 16).ok()?
            }
            plain => plain,
        });
    }
    String::from_utf8(bytes).ok().filter(|name| encode(name) == text)
}
