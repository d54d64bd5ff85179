//! Embedded pictures as pixels.

use std::io::Cursor;

/// Width, height and straight RGBA. `None` for what is no such picture, which a test excludes for all that are embedded.
pub(crate) fn rgba(file: &[u8]) -> Option<(u32, u32, Vec<u8>)> {
    let mut decoder = png::Decoder::new(Cursor::new(file));
    decoder.set_transformations(png::Transformations::normalize_to_color8() | png::Transformations::ALPHA);
    let mut reader = decoder.read_info().ok()?;
    let mut data = vec![0; reader.output_buffer_size()?];
    let info = reader.next_frame(&mut data).ok()?;
    data.truncate(info.buffer_size());
    let data = match info.color_type {
        png::ColorType::Rgba => data,
        png::ColorType::GrayscaleAlpha => data.chunks_exact(2).flat_map(|p| [p[0], p[0], p[0], p[1]]).collect(),
        png::ColorType::Rgb | png::ColorType::Grayscale | png::ColorType::Indexed => return None,
    };
    Some((info.width, info.height, data))
}
