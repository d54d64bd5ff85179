//! What a model or a tool may say to attack the person who reads it: none of it runs, loads, or leads away.

use anyhow::{Context, Result, ensure};
use harness::browser;
use harness::mock_model::Reply;
use serde_json::{Value, json};

use super::app::{App, Setup, test_id};

/// One payload a line, as JSON; `SINK` stands for an address at which every request is seen.
const PAYLOADS: &str = include_str!("data/payloads.jsonl");
/// In one message, so that not every one needs a turn.
const TOGETHER: usize = 32;

/// Everything in the transcript that could have run, loaded or led away. `hit` counts the scripts that ran.
const LOOK: &str = r#"
    const at = document.querySelector('[data-testid=transcript]');
    const bad = [...at.querySelectorAll('script, iframe, frame, object, embed, link, meta, base, form, style, audio, video, portal, math, img, image, source, foreignObject, animate, use')]
        .map((e) => e.outerHTML.slice(0, 200));
    for (const e of at.querySelectorAll('*')) {
        for (const a of e.attributes) {
            if (/^on/i.test(a.name) || a.name === 'srcdoc' || a.name === 'ping' || a.name === 'formaction') bad.push(e.outerHTML.slice(0, 200));
            if (['href', 'src', 'xlink:href', 'action', 'data', 'poster', 'background'].includes(a.name) && !/^(https?:|mailto:|#)/i.test(a.value)) bad.push(e.outerHTML.slice(0, 200));
        }
    }
    return { hits: window.hits ?? 0, bad, where: location.href, title: document.title };
"#;

fn payloads(sink: &str) -> Result<Vec<String>> {
    PAYLOADS.lines().map(|line| Ok(serde_json::from_str::<String>(line)?.replace("SINK", sink))).collect()
}

fn look(app: &App) -> Result<Value> {
    app.page()?.execute(LOOK, &[])
}

#[test]
fn no_payload_runs_loads_or_leads_away() -> Result<()> {
    App::run(Setup::default(), |app| {
        let sink = format!("{}/sink", app.mock.url());
        let payloads = payloads(&sink)?;
        ensure!(payloads.len() >= 200, "only {} payloads", payloads.len());
        app.open_window()?;
        app.pass_welcome()?;
        app.sign_in_with_key()?;
        app.new_session("Hostile")?;
        app.page()?.execute("window.hits = 0; window.hit = () => { window.hits += 1; };", &[])?;
        let at = look(app)?["where"].clone();
        for (number, some) in payloads.chunks(TOGETHER).enumerate() {
            let (ask, end) = (format!("Attack {number}."), format!("End of attack {number}."));
            // A gate is written with double brackets; no payload means one.
            let text = format!("{}\n\n{end}", some.join("\n\n")).replace("[[", "[ [");
            app.mock.on(&ask, vec![Reply::say(&text)]);
            app.send(&ask)?;
            app.see("transcript", &end)?;
            // The entry is there; whatever it would have loaded has had its chance with the next message.
            let seen = look(app)?;
            ensure!(seen["hits"] == 0, "{} scripts ran: {some:?}", seen["hits"]);
            ensure!(seen["bad"] == json!([]), "in the page: {}", seen["bad"]);
            ensure!(seen["where"] == at, "the page went to {}", seen["where"]);
        }
        // Clicked on, a link asks first, and nothing but the web and mail is asked for at all.
        let links = app.page()?.execute(
            "return [...document.querySelectorAll('[data-testid=transcript] a')].map((e) => { e.click(); return e.getAttribute('href'); })",
            &[],
        )?;
        ensure!(look(app)?["where"] == at, "a click led to {}", look(app)?["where"]);
        ensure!(app.browser.opened().is_empty(), "opened without being asked: {:?} of {links}", app.browser.opened());
        let loaded = || app.mock.requests().into_iter().find(|request| request.path.starts_with("/sink"));
        ensure!(loaded().is_none(), "loaded: {:?}", loaded());
        app.picture("hostile")?;

        // The looks do see what they are for.
        browser::visit(&sink)?;
        loaded().context("the sink sees nothing at all")?;
        // Not even a test may plant a handler; this is what it may.
        let plant = "const e = document.createElement('a'); e.href = 'file:///etc/passwd';\
                     document.querySelector('[data-testid=transcript]').append(e, document.createElement('iframe')); window.hit();";
        app.page()?.execute(plant, &[])?;
        let seen = look(app)?;
        ensure!(
            seen["hits"] == 1 && seen["bad"].as_array().is_some_and(|bad| bad.len() == 2),
            "the planted defects are not seen: {seen}"
        );
        Ok(())
    })
}

#[test]
fn what_is_approved_is_shown_to_the_last_byte() -> Result<()> {
    App::run(Setup::default(), |app| {
        let proof = app.project().join("proof");
        // Reordering, hidden, and look-alike letters, as arguments of a command that writes down what it was given.
        let command =
            format!("printf '%s' 'a\u{202e}cod.exe\u{202c} b\u{200b}c \u{430}dmin \u{2066}x\u{2069}' > {}", proof.display());
        app.mock.on("Trick me", vec![Reply::escalated(&command, "harmless \u{202e}ylsuoires"), Reply::say("Tricked.")]);
        app.open_window()?;
        app.pass_welcome()?;
        app.sign_in_with_key()?;
        app.new_session("Tricks")?;
        app.send("Trick me")?;
        app.page()?.wait_for("[data-testid=approval][data-armed=true]")?;
        for mark in ["a⟨U+202E⟩cod.exe⟨U+202C⟩ b⟨U+200B⟩c", "⟨U+2066⟩x⟨U+2069⟩"] {
            app.see("approval", mark)?;
        }
        app.picture("approval-bidi")?;
        let shown = app.page()?.wait_for(&test_id("approval"))?;
        let shown = app.page()?.text(&shown)?;
        ensure!(!shown.contains(['\u{202e}', '\u{200b}', '\u{2066}']), "a hiding character is shown as it is: {shown:?}");
        app.click("approval-allow")?;
        app.see("entry-agent", "Tricked.")?;
        ensure!(
            std::fs::read_to_string(&proof)? == "a\u{202e}cod.exe\u{202c} b\u{200b}c \u{430}dmin \u{2066}x\u{2069}",
            "other bytes ran"
        );
        Ok(())
    })
}
