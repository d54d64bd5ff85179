//! The settings files of a private desktop: its bus, its notification daemon and its panel.
//!
//! Nothing here names a folder of the person who runs the tests: every path is given.

use std::path::Path;

/// A session bus that can start by itself only what has a file in `services`.
pub(super) fn bus(socket: &Path, services: &Path) -> String {
    format!(
        r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:path={}</listen>
  <auth>EXTERNAL</auth>
  <servicedir>{}</servicedir>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
  <limit name="service_start_timeout">10000</limit>
</busconfig>
"#,
        socket.display(),
        services.display()
    )
}

/// dunst that keeps each notification until it is clicked or closed.
pub(super) fn dunst(chooser: &Path) -> String {
    format!(
        "[global]
    width = 360
    height = 220
    origin = top-right
    offset = 12x44
    font = DejaVu Sans 10
    format = \"<b>%s</b>\\n%b\"
    markup = full
    idle_threshold = 0
    history_length = 100
    dmenu = {}
    mouse_left_click = do_action, close_current
    mouse_middle_click = context
    mouse_right_click = close_current
[urgency_low]
    timeout = 0
[urgency_normal]
    timeout = 0
[urgency_critical]
    timeout = 0
",
        chooser.display()
    )
}

/// The program that dunst runs as its menu of buttons: it answers with the line that `wanted` asks for.
pub(super) fn chooser(wanted: &Path, offered: &Path) -> String {
    format!(
        r#"#!/bin/sh
tee "{offered}" | grep -F -e "$(cat "{wanted}")" | head -n 1
"#,
        offered = offered.display(),
        wanted = wanted.display()
    )
}

/// One panel along the top: the open windows on the left, the tray at the right end.
pub(super) const PANEL: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<channel name="xfce4-panel" version="1.0">
  <property name="configver" type="int" value="2"/>
  <property name="panels" type="array">
    <value type="int" value="1"/>
    <property name="panel-1" type="empty">
      <property name="position" type="string" value="p=6;x=0;y=0"/>
      <property name="length" type="uint" value="100"/>
      <property name="position-locked" type="bool" value="true"/>
      <property name="size" type="uint" value="32"/>
      <property name="plugin-ids" type="array">
        <value type="int" value="1"/>
        <value type="int" value="2"/>
        <value type="int" value="3"/>
      </property>
    </property>
  </property>
  <property name="plugins" type="empty">
    <property name="plugin-1" type="string" value="tasklist"/>
    <property name="plugin-2" type="string" value="separator">
      <property name="expand" type="bool" value="true"/>
      <property name="style" type="uint" value="0"/>
    </property>
    <property name="plugin-3" type="string" value="systray">
      <property name="square-icons" type="bool" value="true"/>
      <property name="single-row" type="bool" value="true"/>
      <property name="menu-is-primary" type="bool" value="false"/>
    </property>
  </property>
</channel>
"#;

/// Height of the panel in pixels.
pub(super) const PANEL_HEIGHT: u16 = 32;
