//! The pictures of the tray, embedded. Which one is shown is decided elsewhere.

use turnkeep_view::tray::TrayIcon;

/// For which panel a picture is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shade {
    /// For a dark panel.
    Dark,
    /// For a light panel.
    Light,
    /// Coloured by the system.
    #[cfg_attr(not(target_os = "macos"), expect(dead_code, reason = "only one system colours them"))]
    Template,
}

/// One picture in growing sizes, as PNG.
type Sizes = [&'static [u8]; 5];

macro_rules! picture {
    ($shade:literal, $name:literal) => {
        [
            include_bytes!(concat!("../../../icons/tray/", $shade, "/", $name, "-16.png")) as &[u8],
            include_bytes!(concat!("../../../icons/tray/", $shade, "/", $name, "-22.png")),
            include_bytes!(concat!("../../../icons/tray/", $shade, "/", $name, "-32.png")),
            include_bytes!(concat!("../../../icons/tray/", $shade, "/", $name, "-22@2x.png")),
            include_bytes!(concat!("../../../icons/tray/", $shade, "/", $name, "-32@2x.png")),
        ]
    };
}

macro_rules! shade {
    ($shade:literal, $icon:expr) => {
        match $icon {
            TrayIcon::Error => picture!($shade, "error"),
            TrayIcon::NeedsYou(0 | 1) => picture!($shade, "needs-1"),
            TrayIcon::NeedsYou(2) => picture!($shade, "needs-2"),
            TrayIcon::NeedsYou(3) => picture!($shade, "needs-3"),
            TrayIcon::NeedsYou(4) => picture!($shade, "needs-4"),
            TrayIcon::NeedsYou(5) => picture!($shade, "needs-5"),
            TrayIcon::NeedsYou(6) => picture!($shade, "needs-6"),
            TrayIcon::NeedsYou(7) => picture!($shade, "needs-7"),
            TrayIcon::NeedsYou(8) => picture!($shade, "needs-8"),
            TrayIcon::NeedsYou(9) => picture!($shade, "needs-9"),
            TrayIcon::NeedsYou(_) => picture!($shade, "needs-9plus"),
            TrayIcon::Running(_) => picture!($shade, "running"),
            TrayIcon::Idle => picture!($shade, "idle"),
            TrayIcon::SignedOut => picture!($shade, "signed-out"),
            TrayIcon::Quitting => picture!($shade, "quitting"),
        }
    };
}

/// The picture of a state.
pub(crate) fn picture(shade: Shade, icon: TrayIcon) -> Sizes {
    match shade {
        Shade::Dark => shade!("dark", icon),
        Shade::Light => shade!("light", icon),
        Shade::Template => shade!("template", icon),
    }
}
