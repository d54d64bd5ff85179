//! What was asked for on the command line.

use std::ffi::OsString;

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Run(Opening),
    /// Be the demo agent, with these arguments.
    DemoAgent(Vec<OsString>),
    Version,
    Help,
}

/// Whether the window is opened at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// Where it is needed: nobody has been welcomed yet, or there is no tray to click on.
    WhereNeeded,
    Show,
    /// Never: started by the desktop, not by a person.
    Hidden,
}

pub(crate) const HELP: &str = "\
Turnkeep supervises coding agents from the tray.

Usage: turnkeep [--show | --hidden]
       turnkeep demo-agent [--help]

  --show      open the window
  --hidden    stay in the tray, whatever happens
  --version   say the version, and nothing else
  --help      say this

  demo-agent  be the built-in demo agent on the standard streams: no window, no account, no network

A second start opens the window of the first. TURNKEEP_HOME puts everything below one folder.
";

/// Reads the arguments after the program's name.
///
/// # Errors
/// What cannot be understood, and what to do.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Wanted, String> {
    let mut opening = Opening::WhereNeeded;
    let mut arguments = arguments.into_iter().peekable();
    if arguments.next_if(|first| first == "demo-agent").is_some() {
        return Ok(Wanted::DemoAgent(arguments.collect()));
    }
    for argument in arguments {
        match argument.to_str() {
            Some("--show") => opening = Opening::Show,
            Some("--hidden") => opening = Opening::Hidden,
            Some("--version" | "-V") => return Ok(Wanted::Version),
            Some("--help" | "-h") => return Ok(Wanted::Help),
            Some("serve") => return Err("`turnkeep serve` does not exist yet: Turnkeep needs a desktop".to_owned()),
            _ => return Err(format!("{} is not understood: see turnkeep --help", argument.to_string_lossy())),
        }
    }
    Ok(Wanted::Run(opening))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(arguments: &[&str]) -> Result<Wanted, String> {
        parse(arguments.iter().map(OsString::from))
    }

    #[test]
    fn arguments_are_few() {
        assert_eq!(given(&[]), Ok(Wanted::Run(Opening::WhereNeeded)));
        assert_eq!(given(&["--show"]), Ok(Wanted::Run(Opening::Show)));
        assert_eq!(given(&["--hidden"]), Ok(Wanted::Run(Opening::Hidden)));
        assert_eq!(given(&["--version"]), Ok(Wanted::Version));
        assert_eq!(given(&["demo-agent", "--help"]), Ok(Wanted::DemoAgent(vec!["--help".into()])));
        assert!(given(&["--show", "demo-agent"]).is_err(), "it is one or the other");
        assert!(given(&["serve"]).unwrap_err().contains("does not exist yet"));
        assert!(given(&["--sho"]).unwrap_err().contains("--help"));
    }
}
