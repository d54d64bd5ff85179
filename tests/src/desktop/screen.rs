//! The X display of a private desktop: what is on it, and a person's mouse and keyboard.
//!
//! Input goes through the X server's own test extension, so a program cannot tell it from a real device.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use x11rb::connection::Connection as _;
use x11rb::protocol::xproto::{
    AtomEnum, BUTTON_PRESS_EVENT, BUTTON_RELEASE_EVENT, ClientMessageEvent, ConnectionExt as _, EventMask, ImageFormat,
    KEY_PRESS_EVENT, KEY_RELEASE_EVENT, MOTION_NOTIFY_EVENT, MapState, Window,
};
use x11rb::protocol::xtest::ConnectionExt as _;
use x11rb::rust_connection::RustConnection;

/// A mouse button as the X server numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Button {
    Left = 1,
    Middle = 2,
    Right = 3,
}

/// A key by its X keysym; letters and digits are their Latin-1 code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key(pub u32);

impl Key {
    pub const ESCAPE: Self = Self(0xff1b);
    pub const ENTER: Self = Self(0xff0d);
    pub const TAB: Self = Self(0xff09);
    pub const CONTROL: Self = Self(0xffe3);
    pub const SHIFT: Self = Self(0xffe1);
    pub const ALT: Self = Self(0xffe9);
}

/// A window that the window manager looks after, in screen coordinates, without its frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenWindow {
    pub id: u32,
    pub title: String,
    pub pid: Option<i32>,
    pub x: i16,
    pub y: i16,
    pub width: u16,
    pub height: u16,
    pub visible: bool,
    /// It has the keyboard.
    pub active: bool,
}

/// Pixels as rows of red, green, blue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    pub width: u16,
    pub height: u16,
    pub rgb: Vec<u8>,
}

impl Picture {
    /// The colour at a place that lies inside the picture.
    #[must_use]
    pub fn at(&self, x: u16, y: u16) -> [u8; 3] {
        let start = 3 * (usize::from(y) * usize::from(self.width) + usize::from(x));
        match self.rgb.get(start..start + 3) {
            Some([red, green, blue]) => [*red, *green, *blue],
            _ => [0; 3],
        }
    }

    /// Writes it as a PNG file.
    pub fn save(&self, path: &Path) -> Result<()> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        }
        let file = File::create(path).with_context(|| format!("making {}", path.display()))?;
        let mut encoder = png::Encoder::new(BufWriter::new(file), self.width.into(), self.height.into());
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.rgb)?;
        writer.finish().with_context(|| format!("writing {}", path.display()))
    }
}

#[derive(Debug)]
pub(super) struct Screen {
    x: RustConnection,
    root: Window,
}

impl Screen {
    pub(super) fn connect(display: &str) -> Result<Self> {
        let (x, number) =
            RustConnection::connect(Some(display)).with_context(|| format!("connecting to the X display {display}"))?;
        let root = x.setup().roots.get(number).context("the display has no screen")?.root;
        Ok(Self { x, root })
    }

    pub(super) fn picture(&self) -> Result<Picture> {
        let size = self.x.get_geometry(self.root)?.reply()?;
        self.part(0, 0, size.width, size.height)
    }

    pub(super) fn part(&self, x: i16, y: i16, width: u16, height: u16) -> Result<Picture> {
        let image =
            self.x.get_image(ImageFormat::Z_PIXMAP, self.root, x, y, width, height, !0)?.reply().context("reading the screen")?;
        // Xvfb at depth 24: four bytes a pixel, blue first.
        ensure!(image.depth == 24, "the display has depth {}, not 24", image.depth);
        let rgb = image.data.chunks_exact(4).flat_map(|p| [p[2], p[1], p[0]]).collect();
        Ok(Picture { width, height, rgb })
    }

    pub(super) fn move_to(&self, x: i16, y: i16) -> Result<()> {
        self.fake(MOTION_NOTIFY_EVENT, 0, x, y)
    }

    pub(super) fn click(&self, x: i16, y: i16, button: Button) -> Result<()> {
        self.move_to(x, y)?;
        self.fake(BUTTON_PRESS_EVENT, button as u8, 0, 0)?;
        self.fake(BUTTON_RELEASE_EVENT, button as u8, 0, 0)
    }

    /// Presses the keys in this order and lets them go in the opposite one: `[CONTROL, Key('q')]`.
    pub(super) fn press(&self, keys: &[Key]) -> Result<()> {
        let codes = keys.iter().map(|key| self.code(*key)).collect::<Result<Vec<u8>>>()?;
        for code in &codes {
            self.fake(KEY_PRESS_EVENT, *code, 0, 0)?;
        }
        for code in codes.iter().rev() {
            self.fake(KEY_RELEASE_EVENT, *code, 0, 0)?;
        }
        Ok(())
    }

    fn code(&self, key: Key) -> Result<u8> {
        let setup = self.x.setup();
        let (first, last) = (setup.min_keycode, setup.max_keycode);
        let map = self.x.get_keyboard_mapping(first, last - first + 1)?.reply()?;
        map.keysyms
            .chunks(usize::from(map.keysyms_per_keycode.max(1)))
            .zip(first..=last)
            .find_map(|(symbols, code)| (symbols.first() == Some(&key.0)).then_some(code))
            .with_context(|| format!("the keyboard has no key {:#x}", key.0))
    }

    fn fake(&self, kind: u8, detail: u8, x: i16, y: i16) -> Result<()> {
        self.x.xtest_fake_input(kind, detail, x11rb::CURRENT_TIME, self.root, x, y, 0)?.check()?;
        Ok(())
    }

    pub(super) fn windows(&self) -> Result<Vec<OpenWindow>> {
        let mut found = Vec::new();
        for id in self.property32(self.root, "_NET_CLIENT_LIST", AtomEnum::WINDOW.into())? {
            // A window may be gone between the list and the question: then it is not open.
            if let Ok(window) = self.window(id) {
                found.push(window);
            }
        }
        Ok(found)
    }

    fn window(&self, id: Window) -> Result<OpenWindow> {
        let size = self.x.get_geometry(id)?.reply()?;
        let place = self.x.translate_coordinates(id, self.root, 0, 0)?.reply()?;
        let state = self.x.get_window_attributes(id)?.reply()?.map_state;
        let pid = self.property32(id, "_NET_WM_PID", AtomEnum::CARDINAL.into())?;
        let utf8 = self.atom("UTF8_STRING")?;
        let title = self.x.get_property(false, id, self.atom("_NET_WM_NAME")?, utf8, 0, 1024)?.reply()?.value;
        Ok(OpenWindow {
            id,
            title: String::from_utf8_lossy(&title).into_owned(),
            pid: pid.first().and_then(|pid| i32::try_from(*pid).ok()),
            x: place.dst_x,
            y: place.dst_y,
            width: size.width,
            height: size.height,
            visible: state == MapState::VIEWABLE,
            active: self.property32(self.root, "_NET_ACTIVE_WINDOW", AtomEnum::WINDOW.into())?.first() == Some(&id),
        })
    }

    /// What the close button of a window's frame does.
    pub(super) fn close(&self, id: u32) -> Result<()> {
        let kind = self.atom("_NET_CLOSE_WINDOW")?;
        // The second word says that a person asked, not a pager.
        let message = ClientMessageEvent::new(32, id, kind, [x11rb::CURRENT_TIME, 2, 0, 0, 0]);
        let mask = EventMask::SUBSTRUCTURE_NOTIFY | EventMask::SUBSTRUCTURE_REDIRECT;
        self.x.send_event(false, self.root, mask, message)?.check().context("closing a window")
    }

    fn atom(&self, name: &str) -> Result<u32> {
        Ok(self.x.intern_atom(false, name.as_bytes())?.reply()?.atom)
    }

    fn property32(&self, window: Window, name: &str, kind: u32) -> Result<Vec<u32>> {
        let reply = self.x.get_property(false, window, self.atom(name)?, kind, 0, 1024)?.reply()?;
        Ok(reply.value32().map(Iterator::collect).unwrap_or_default())
    }
}

/// Where the icons of a tray are: places of `strip` whose columns differ from its first column.
///
/// `strip` is the right end of a panel, with the panel's bare background at its left edge. Gives the centre of each
/// icon, left to right.
pub(super) fn icons_in(strip: &Picture) -> Vec<(u16, u16)> {
    const GAP: u16 = 4;
    let differs = |x: u16, y: u16| {
        let (here, bare) = (strip.at(x, y), strip.at(0, y));
        here.iter().zip(bare).any(|(a, b)| a.abs_diff(b) > 24)
    };
    let mut icons = Vec::new();
    let mut run: Option<(u16, u16)> = None;
    for x in 0..strip.width {
        let drawn = (0..strip.height).any(|y| differs(x, y));
        run = match (run, drawn) {
            (None, false) => None,
            (None, true) => Some((x, x)),
            (Some((from, _)), true) => Some((from, x)),
            (Some((from, to)), false) if x - to < GAP => Some((from, to)),
            (Some(done), false) => {
                icons.push(done);
                None
            }
        };
    }
    icons.extend(run);
    icons
        .into_iter()
        // A line of one or two pixels is a separator or the panel's edge.
        .filter(|(from, to)| to - from >= 4)
        .map(|(from, to)| (u16::midpoint(from, to), strip.height / 2))
        .collect()
}

pub(super) fn parse_display(line: &str) -> Result<String> {
    let number = line.trim();
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        bail!("the X server named no display: {line:?}");
    }
    Ok(format!(":{number}"))
}
