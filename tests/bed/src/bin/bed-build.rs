//! Builds the programs of the bed ahead of the tests and prints where they are. Names of programs as arguments build only
//! those; without any, all but `helm` are built, which few tests need.

use std::process::ExitCode;

use bed::Program;

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if let Some(unknown) = wanted
        .iter()
        .find(|name| Program::ALL.iter().all(|program| program.name() != *name))
    {
        eprintln!(
            "unknown program {unknown:?}; there are {:?}",
            Program::ALL.map(Program::name)
        );
        return ExitCode::FAILURE;
    }
    for program in Program::ALL {
        let build = if wanted.is_empty() {
            program != Program::Helm
        } else {
            wanted.iter().any(|name| name == program.name())
        };
        if !build {
            continue;
        }
        match program.locate() {
            Ok(path) => println!("{}", path.display()),
            Err(error) => {
                eprintln!("error: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
