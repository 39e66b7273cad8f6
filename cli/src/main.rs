//! The `janua` command: boot loader and supervisor of the kernel image it embeds, and the questions one can ask of it.

#![forbid(unsafe_code)]

mod allowance;
mod args;
mod bench;
mod boot;
mod choice;
mod control;
mod doctor;
mod environment;
mod exit;
mod gates;
mod options;
mod run;
mod support;
mod symbols;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use janua_platform_host::found;

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == boot::KEEPER) {
        return boot::keep();
    }
    if std::env::args_os().nth(1).is_some_and(|argument| argument == run::DEBUGGER) {
        return run::debug();
    }
    if std::env::args_os().nth(1).is_some_and(|argument| argument == run::RELAY) {
        return run::relay();
    }
    found::ignore_file_size_signal();
    if let Err(why) = run::limits::stack() {
        return exit::fail(&why);
    }
    let args = match args::Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Help and version are wanted, anything else is a mistake in our own arguments. Where another exit code would be
            // the program's it is 125, as env(1) has it.
            let runs = std::env::args_os()
                .nth(1)
                .is_some_and(|command| ["run", "boot", "exec", "wait"].iter().any(|runs| command == *runs));
            let code = match (error.use_stderr(), runs) {
                (false, _) => 0,
                (true, true) => exit::JANUA,
                (true, false) => exit::USAGE,
            };
            if !error.use_stderr() {
                // In colour, where that is a terminal.
                let printed = error.print().and_then(|()| std::io::stdout().flush());
                return exit::printed(printed);
            }
            // Nothing is left to do when standard error is closed.
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    match args.command {
        args::Command::Run(run) => match run.options() {
            Ok(options) => run::run(options),
            Err(why) => exit::fail(&why),
        },
        args::Command::List(which) => control::client::list(&which),
        args::Command::Exec(what) => control::client::exec(*what),
        args::Command::Kill(which) => control::client::kill(&which),
        args::Command::Pause(which) => control::client::pause(&which),
        args::Command::Resume(which) => control::client::resume(&which),
        args::Command::Stats(which) => control::client::stats(&which),
        args::Command::Move(which) => control::client::move_module(&which),
        args::Command::Logs(which) => control::client::logs(&which),
        args::Command::Wait(which) => control::client::wait(&which),
        args::Command::Boot(boot) => match boot.options() {
            Ok(options) => boot::boot(&options),
            Err(why) => exit::fail(&why),
        },
        args::Command::Doctor => doctor::print(),
        args::Command::Bench(what) => bench::run(what),
        args::Command::Report(which) => bench::report(&which),
        args::Command::Probe { arguments } => bench::probe(&arguments),
        args::Command::Support(which) => support::print(&which),
        args::Command::Symbols(which) => symbols::print(&which),
        args::Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut args::Args::command(), "janua", &mut script);
            exit::print(&script)
        }
    }
}
