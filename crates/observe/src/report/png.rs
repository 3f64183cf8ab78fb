//! A figure as a picture that looks the same everywhere, with bundled fonts.

use super::figure::Figure;
use resvg::{tiny_skia, usvg};
use std::sync::{Arc, LazyLock};

const REGULAR: &[u8] = include_bytes!("../../vendor/roboto-2.138/Roboto-Regular.ttf");
const MEDIUM: &[u8] = include_bytes!("../../vendor/roboto-2.138/Roboto-Medium.ttf");
/// Pixels for one unit of the picture.
const PIXELS: f32 = 2.0;

static FONTS: LazyLock<Arc<usvg::fontdb::Database>> = LazyLock::new(|| {
    let mut fonts = usvg::fontdb::Database::new();
    for font in [REGULAR, MEDIUM] {
        fonts.load_font_data(font.to_vec());
    }
    fonts.set_sans_serif_family("Roboto");
    Arc::new(fonts)
});

/// The reason why there is no picture.
#[derive(Debug, thiserror::Error)]
#[error("the figure cannot be drawn: {0}")]
pub struct DrawError(String);

impl Figure {
    /// The picture in PNG, light, 1720 pixels wide.
    ///
    /// # Errors
    /// Only if it exceeds the greatest height, because of thousands of warnings or series.
    pub fn png(&self) -> Result<Vec<u8>, DrawError> {
        let tree = self.tree()?;
        let size = tree.size().to_int_size().scale_by(PIXELS);
        let pixmap = size.and_then(|size| tiny_skia::Pixmap::new(size.width(), size.height()));
        let mut pixmap = pixmap.ok_or_else(|| DrawError("it is too large".to_owned()))?;
        resvg::render(&tree, tiny_skia::Transform::from_scale(PIXELS, PIXELS), &mut pixmap.as_mut());
        pixmap.encode_png().map_err(|error| DrawError(error.to_string()))
    }

    fn tree(&self) -> Result<usvg::Tree, DrawError> {
        let options = usvg::Options { fontdb: FONTS.clone(), ..usvg::Options::default() };
        usvg::Tree::from_str(&self.svg(), &options).map_err(|error| DrawError(error.to_string()))
    }
}
