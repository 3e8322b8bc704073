//! `image`: assembles the image, renews its lock, pushes it.
//!
//! Data goes to standard output, messages to standard error.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, Parser, Subcommand};
use image::assembly::{self, Added, Assembled, Inputs};
use image::debian::apt::{AptError, Mirrors};
use image::debian::{Lock, Package};
use image::definition::{Definition, Program};
use image::glibc::Glibc;
use image::layer::sha256;
use image::layout::Layout;
use image::papers::{Built, Origin, Parts};
use image::place::ImagePath;
use image::push::{self, Target};
use image::{crates, jq};
use jiff::Timestamp;
use signing::Signer;
use testbed::find::{Finder, Found};
use testbed::part::Part;
use testbed::report;

/// The name of the definition's file; its folder also has the locks.
const DEFINITION: &str = "image.yaml";

/// The operator's container image, without a container engine.
#[derive(Parser)]
#[command(name = "image", version, max_term_width = 100)]
struct Cli {
    /// The folder with the definition, image.yaml, and a lock of packages an architecture
    #[arg(long, global = true, default_value = "image")]
    definition: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Assemble the image into a folder (OCI image layout), and print what is in it
    Build(Build),
    /// Pin the newest packages of the suites that the definition names
    Lock {
        /// As Debian calls it [default: all that have a lock]
        #[arg(long)]
        architecture: Vec<String>,
    },
    /// Fetch the pinned packages, or say which of them are gone, and print the folder with the definition that can be built
    Fetch {
        /// Where packages are kept once they were fetched
        #[arg(long)]
        packages: PathBuf,
        /// Where mirrors have some no longer: pin today's in a copy of the definition, which goes into this folder
        #[arg(long, value_name = "FOLDER")]
        or_today: Option<PathBuf>,
    },
    /// Put helm and kubectl, built as they go into the image, into a folder
    Programs {
        #[arg(long)]
        to: PathBuf,
    },
    /// Put the image's jq into the testbed's cache, for hooks of tests; if that fails, say so and exit well
    Jq,
    /// Send an assembled image to a registry, and print its digest there
    Push {
        /// The folder with the image
        layout: PathBuf,
        /// Where to, as in registry.example/team/addon-operator:1.0; plain HTTP for this machine, else TLS
        reference: String,
        /// Logins, as container engines keep them (config.json); none if it is not there
        #[arg(long)]
        credentials: Option<PathBuf>,
        /// Sign it with this private key (PKCS#8 in PEM form, ECDSA on P-256 or Ed25519), so that cosign verify --key accepts it
        #[arg(long, value_name = "FILE")]
        key: Option<PathBuf>,
    },
}

#[derive(Args)]
struct Build {
    /// Where the image goes; an older one there is replaced
    #[arg(long)]
    to: PathBuf,
    /// The operator; a dynamic one needs a C library no newer than that of the packages
    #[arg(long)]
    operator: PathBuf,
    /// The repository, from which the definition copies
    #[arg(long, default_value = ".")]
    repository: PathBuf,
    /// Where packages are kept once they were fetched
    #[arg(long)]
    packages: PathBuf,
    /// Put a file or folder on top, in a layer of its own, as in `ours/modules:/modules`
    #[arg(long, value_name = "SOURCE:PLACE", value_parser = added)]
    add: Vec<Added>,
    /// The commit that it is made from
    #[arg(long)]
    revision: Option<String>,
    /// The time of that commit, in seconds
    #[arg(long, value_name = "SECONDS")]
    epoch: Option<i64>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command {
        Command::Build(build) => run_build(&cli.definition, &build),
        Command::Lock { architecture } => run_lock(&cli.definition, architecture),
        Command::Fetch { packages, or_today } => run_fetch(&cli.definition, &packages, or_today.as_deref()),
        Command::Programs { to } => run_programs(&cli.definition, &to),
        Command::Jq => run_jq(&cli.definition),
        Command::Push {
            layout,
            reference,
            credentials,
            key,
        } => run_push(&layout, &reference, credentials.as_deref(), key.as_deref()),
    };
    done.map_or_else(
        |error| {
            say(&format!("error: {}", report::chain(error.as_ref())));
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    )
}

fn run_build(folder: &Path, build: &Build) -> anyhow::Result<()> {
    let definition = Definition::read(&folder.join(DEFINITION))?;
    let architecture = architecture()?;
    let lock = lock(&definition, folder, architecture)?;
    let origin = Origin {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        revision: build.revision.clone(),
        created: build
            .epoch
            .map(Timestamp::from_second)
            .transpose()?
            .map(|time| time.to_string()),
    };
    starts(&build.operator, &lock)?;
    let programs = programs(&definition, &build.operator)?;
    let image = assembly::assemble(
        &definition,
        &Inputs {
            repository: &build.repository,
            architecture,
            packages: &packages(&lock, &build.packages)?,
            programs: &programs,
            added: &build.add,
            origin: &origin,
            parts: &parts(build, architecture, &lock, &programs)?,
        },
        &build.to,
    )?;
    Ok(io::stdout().write_all(table(&image).as_bytes())?)
}

/// Does the operator start beside the C library of these packages?
fn starts(operator: &Path, lock: &Lock) -> anyhow::Result<()> {
    let library = lock.packages().find(|package| package.name == "libc6");
    let Some(has) = library.and_then(|package| Glibc::parse(&package.version)) else {
        return Ok(());
    };
    let tried = || format!("cannot put {} into the image", operator.display());
    has.serves(&fs_err::read(operator)?).with_context(tried)
}

/// The contents that the papers of the image list.
fn parts(
    build: &Build,
    architecture: &str,
    lock: &Lock,
    programs: &BTreeMap<Program, PathBuf>,
) -> anyhow::Result<Parts> {
    let target = match architecture {
        "arm64" => "aarch64-unknown-linux-gnu",
        _ => "x86_64-unknown-linux-gnu",
    };
    let built = |(program, file): (&Program, &PathBuf)| -> anyhow::Result<Built> {
        let part = part(*program);
        Ok(Built {
            name: part.map_or("addon-operator", Part::name).to_owned(),
            version: part.map_or(env!("CARGO_PKG_VERSION"), Part::version).to_owned(),
            sha256: sha256(&fs_err::read(file)?),
        })
    };
    Ok(Parts {
        debian: lock.packages().cloned().collect(),
        crates: crates::linked(&build.repository, target)?,
        programs: programs.iter().map(built).collect::<anyhow::Result<_>>()?,
        added: build.add.iter().map(|added| added.place.to_string()).collect(),
    })
}

fn run_fetch(folder: &Path, kept: &Path, or_today: Option<&Path>) -> anyhow::Result<()> {
    let mut usable = folder;
    if let Err(error) = fetch(folder, kept) {
        let is_gone = matches!(error.downcast_ref(), Some(AptError::Gone { .. }));
        let Some(copy) = or_today.filter(|_| is_gone) else {
            return Err(error);
        };
        say(&report::chain(error.as_ref()));
        // A lock from an earlier run may have any age.
        if copy.exists() {
            fs_err::remove_dir_all(copy)?;
        }
        fs_err::create_dir_all(copy)?;
        fs_err::copy(folder.join(DEFINITION), copy.join(DEFINITION))?;
        run_lock(copy, vec![architecture()?.to_owned()])?;
        fetch(copy, kept)?;
        usable = copy;
    }
    Ok(writeln!(io::stdout(), "{}", usable.display())?)
}

fn fetch(folder: &Path, kept: &Path) -> anyhow::Result<()> {
    let definition = Definition::read(&folder.join(DEFINITION))?;
    packages(&lock(&definition, folder, architecture()?)?, kept).map(drop)
}

fn lock(definition: &Definition, folder: &Path, architecture: &str) -> anyhow::Result<Lock> {
    let file = folder.join(format!("{architecture}.lock"));
    let lock = Lock::read(&file)?;
    lock.covers(definition.packages(), &file)?;
    Ok(lock)
}

fn packages(lock: &Lock, kept: &Path) -> anyhow::Result<BTreeMap<String, PathBuf>> {
    let packages: Vec<&Package> = lock.packages().collect();
    let files = Mirrors::of_machine()?.fetch(&packages, kept)?;
    Ok(packages.iter().map(|package| package.name.clone()).zip(files).collect())
}

fn programs(definition: &Definition, operator: &Path) -> anyhow::Result<BTreeMap<Program, PathBuf>> {
    let mut programs = BTreeMap::from([(Program::Operator, operator.to_owned())]);
    programs.extend(
        tools(definition)?
            .into_iter()
            .map(|(program, found)| (program, found.file)),
    );
    Ok(programs)
}

/// The part of the testbed that builds the program.
fn part(program: Program) -> Option<Part> {
    match program {
        Program::Operator => None,
        Program::Kubectl => Some(Part::Kubectl),
        Program::Helm3 => Some(Part::Helm3),
        Program::Helm4 => Some(Part::Helm4),
    }
}

/// The third-party programs that the definition names, built from their pinned modules.
fn tools(definition: &Definition) -> anyhow::Result<BTreeMap<Program, Found>> {
    let programs = definition.programs();
    let parts: BTreeMap<Program, Part> = programs
        .into_iter()
        .filter_map(|program| Some((program, part(program)?)))
        .collect();
    let wanted: Vec<Part> = parts.values().copied().collect();
    let mut found = Finder::from_environment().pinned(&wanted)?;
    Ok(parts
        .into_iter()
        .filter_map(|(program, part)| Some((program, found.remove(&part)?)))
        .collect())
}

fn run_programs(folder: &Path, to: &Path) -> anyhow::Result<()> {
    let definition = Definition::read(&folder.join(DEFINITION))?;
    let found = tools(&definition)?;
    fs_err::create_dir_all(to)?;
    let places = definition.layers.iter().flat_map(|layer| &layer.programs);
    for (name, found) in places.filter_map(|(place, program)| Some((place.names().last()?, found.get(program)?))) {
        fs_err::copy(&found.file, to.join(name))?;
    }
    Ok(())
}

/// A table of the layers and their sizes, and the digest.
fn table(image: &Assembled) -> String {
    let megabytes = |bytes: u64| format!("{}.{}", bytes / 1_000_000, bytes / 100_000 % 10);
    let row = |name: &str, packed: u64, unpacked: u64| {
        format!("{name:<10} {:>8} {:>10}\n", megabytes(packed), megabytes(unpacked))
    };
    let mut text = format!("{:<10} {:>8} {:>10}\n", "layer", "MB", "unpacked");
    let (mut packed, mut unpacked) = (0, 0);
    for (name, written) in &image.layers {
        text.push_str(&row(name, written.packed, written.unpacked));
        packed += written.packed;
        unpacked += written.unpacked;
    }
    text.push_str(&row("in all", packed, unpacked));
    text.push_str(&image.manifest.digest);
    text.push('\n');
    text
}

fn run_lock(folder: &Path, architectures: Vec<String>) -> anyhow::Result<()> {
    let definition = Definition::read(&folder.join(DEFINITION))?;
    let architectures = if architectures.is_empty() {
        locked(folder)?
    } else {
        architectures
    };
    let mirrors = Mirrors::of_machine()?;
    let without: BTreeSet<&str> = definition.debian.without.keys().map(String::as_str).collect();
    for architecture in architectures {
        let today = mirrors.today(&definition.debian.suites, &architecture)?;
        let mut packages = Vec::new();
        for stanza in today.index.closure(&definition.packages(), &without)? {
            let suite = today.suite_of.get(&stanza.filename);
            packages.push(Package {
                name: stanza.package.clone(),
                version: stanza.version.clone(),
                suite: suite
                    .with_context(|| format!("no suite has {}", stanza.filename))?
                    .clone(),
                path: stanza.filename.clone(),
                sha256: stanza.sha256.clone(),
            });
        }
        let file = folder.join(format!("{architecture}.lock"));
        say(&format!("{} packages in {}", packages.len(), file.display()));
        Lock::new(packages).write(&file)?;
    }
    Ok(())
}

fn locked(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut architectures = Vec::new();
    for entry in fs_err::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        architectures.extend(name.strip_suffix(".lock").map(str::to_owned));
    }
    if architectures.is_empty() {
        architectures.push(architecture()?.to_owned());
    }
    architectures.sort();
    Ok(architectures)
}

fn run_jq(folder: &Path) -> anyhow::Result<()> {
    let provided = jq::provide(&folder.join(format!("{}.lock", architecture()?)));
    provided.unwrap_or_else(|error| say(&format!("tests call this machine's jq: {}", report::chain(&error))));
    Ok(())
}

fn run_push(layout: &Path, reference: &str, credentials: Option<&Path>, key: Option<&Path>) -> anyhow::Result<()> {
    let signer = key.map(Signer::read).transpose()?;
    // Installing a second provider in one process fails, and this process installs only one.
    drop(rustls::crypto::ring::default_provider().install_default());
    let target = Target::new(reference, credentials.filter(|file| file.exists()))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let pushed = runtime.block_on(push::push(&Layout::open(layout), &target, signer.as_ref()))?;
    say(&format!("sent {} bytes", pushed.sent));
    if let Some(signer) = signer {
        say(&format!("signed by the key {}", signer.id()));
    }
    let reference = target.reference();
    let name = format!(
        "{}/{}@{}\n",
        reference.registry(),
        reference.repository(),
        pushed.digest
    );
    Ok(io::stdout().write_all(name.as_bytes())?)
}

/// The architecture of this machine: programs are built for the machine that builds them.
fn architecture() -> anyhow::Result<&'static str> {
    Ok(match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => bail!("images are made on amd64 and arm64, not on {other}"),
    })
}

fn added(text: &str) -> Result<Added, String> {
    let (source, place) = text.rsplit_once(':').ok_or("written as SOURCE:PLACE")?;
    let place = ImagePath::absolute(place).map_err(|error| error.to_string())?;
    let source = PathBuf::from(source);
    if !source.exists() {
        return Err(format!("there is no {}", source.display()));
    }
    Ok(Added { source, place })
}

/// Writes a message for the person to standard error. A closed standard error is no reason to stop.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "image: {line}");
}
