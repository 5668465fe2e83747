//! How to install a Python module that is missing.
//!
//! Anybody may publish a package under the name of a user's own module. So a command to install is
//! given only for names that everybody uses for the same package.

/// The place of a module in the user's own code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Own {
    /// In the code of the run: its folder below the root (empty for the root itself), and its path
    /// from the folder where the run starts.
    Below { folder: String, from_start: String },
    /// Its first part is in the code of the run, the rest is not.
    PartOf { package: String },
    /// In the folder of the submission, but not in the code that was sent.
    LeftOut { path: String },
}

/// Folders of a code tree that hold the packages of others.
const FOREIGN_FOLDERS: [&str; 6] = [
    "site-packages",
    "dist-packages",
    "node_modules",
    ".venv",
    "venv",
    ".git",
];

/// Finds a module among the files of a run's code, given by their paths below its root. `start` is
/// the folder below the root where the run starts.
pub fn find_own<'p>(name: &str, start: &str, paths: impl Iterator<Item = &'p str>) -> Option<Own> {
    let parts: Vec<&str> = name.split('.').collect();
    let top = *parts.first()?;
    // A folder that only holds output of a library is not the library: `wandb/run-1/code/train.py`.
    let depth = if KNOWN_PACKAGES.iter().any(|(module, _)| *module == top) {
        1
    } else {
        2
    };
    let (mut nearest, mut has_all): (Option<&str>, bool) = (None, false);
    for path in paths {
        let Some(stem) = path.strip_suffix(".py") else {
            continue;
        };
        let words: Vec<&str> = path.split('/').collect();
        if words.iter().any(|word| FOREIGN_FOLDERS.contains(word)) {
            continue;
        }
        let file = stem.rsplit('/').next().unwrap_or_default();
        let at = words
            .iter()
            .position(|word| *word == top)
            .filter(|at| words.len() - at - 1 <= depth)
            .or_else(|| (file == top).then_some(words.len() - 1));
        let Some(at) = at else { continue };
        let folder = if at == 0 {
            ""
        } else {
            &path[..words[..at].join("/").len()]
        };
        if nearest.is_none_or(|nearest| folder.len() < nearest.len()) {
            nearest = Some(folder);
        }
        let below: Vec<&str> = words[at..words.len() - 1]
            .iter()
            .copied()
            .chain([file])
            .collect();
        has_all |= parts.len() > 1 && below.starts_with(&parts);
    }
    let folder = nearest?.to_owned();
    if parts.len() > 1 && !has_all {
        return Some(Own::PartOf {
            package: top.to_owned(),
        });
    }
    let from_start = from(start, &folder);
    Some(Own::Below { folder, from_start })
}

/// The path of a folder relative to another, both below one root.
fn from(start: &str, folder: &str) -> String {
    let (start, folder): (Vec<&str>, Vec<&str>) = (
        start.split('/').filter(|word| !word.is_empty()).collect(),
        folder.split('/').filter(|word| !word.is_empty()).collect(),
    );
    let shared = start
        .iter()
        .zip(&folder)
        .take_while(|(one, other)| one == other)
        .count();
    let words: Vec<&str> = std::iter::repeat_n("..", start.len() - shared)
        .chain(folder[shared..].iter().copied())
        .collect();
    if words.is_empty() {
        ".".to_owned()
    } else {
        words.join("/")
    }
}

/// Advice on a missing module, in one sentence. `own` is where the user's code has it.
pub fn advice(name: &str, own: Option<&Own>) -> String {
    let top = name.split('.').next().unwrap_or(name);
    match own {
        Some(Own::Below { folder, from_start }) => {
            let place = if folder.is_empty() {
                "at the code root".to_owned()
            } else {
                format!("in `{folder}`")
            };
            format!(
                "`{top}` is your own code, {place}: let Python find it with `PYTHONPATH: \
                    {from_start}` in `environment.env`, or start elsewhere with `code.workdir`"
            )
        }
        Some(Own::PartOf { package }) => {
            format!(
                "`{package}` is your own code and has no `{name}`: correct the name, or check with \
                    `tow init --explain` that the file is not left out"
            )
        }
        Some(Own::LeftOut { path }) => format!(
            "`{path}` is your own code, but was left out of what was submitted: `tow init \
                --explain` says why"
        ),
        None => unknown(name, top),
    }
}

fn unknown(name: &str, top: &str) -> String {
    if let Some((_, package)) = KNOWN_PACKAGES
        .iter()
        .find(|(module, _)| *module == name || *module == top)
    {
        return if top == name {
            format!("install it: add `pip install {package}` to `environment.setup`")
        } else {
            format!(
                "install or upgrade it: add `pip install -U {package}` to `environment.setup`, or \
                    correct the name `{name}`"
            )
        };
    }
    let own = format!(
        "check that `{name}` is under `code.root` and not ignored, and set `PYTHONPATH` or \
            `code.workdir` so that Python finds it"
    );
    if COMMON_OWN_MODULES.contains(&top) {
        return own;
    }
    if top.starts_with('_') {
        return format!(
            "`{top}` is a part that this Python or package was built without: take another build \
                or image"
        );
    }
    format!(
        "if `{top}` is your own code, {own}; if it is a package, add it to your requirements, \
            which `environment.setup` installs"
    )
}

/// Common names of users' own modules. A package of such a name is by somebody else.
const COMMON_OWN_MODULES: [&str; 13] = [
    "common", "config", "configs", "data", "dataset", "lib", "main", "model", "models", "src",
    "train", "trainer", "utils",
];

/// Well-known modules, and their packages.
const KNOWN_PACKAGES: [(&str, &str); 84] = [
    ("Crypto", "pycryptodome"),
    ("PIL", "pillow"),
    ("accelerate", "accelerate"),
    ("albumentations", "albumentations"),
    ("attr", "attrs"),
    ("bitsandbytes", "bitsandbytes"),
    ("boto3", "boto3"),
    ("bs4", "beautifulsoup4"),
    ("catboost", "catboost"),
    ("cv2", "opencv-python-headless"),
    ("dateutil", "python-dateutil"),
    ("deepspeed", "deepspeed"),
    ("diffusers", "diffusers"),
    ("dill", "dill"),
    ("distutils", "setuptools"),
    ("dotenv", "python-dotenv"),
    ("einops", "einops"),
    ("faiss", "faiss-cpu"),
    ("fairscale", "fairscale"),
    ("flash_attn", "flash-attn"),
    ("flax", "flax"),
    ("ftfy", "ftfy"),
    ("gensim", "gensim"),
    ("git", "gitpython"),
    ("google.protobuf", "protobuf"),
    ("gymnasium", "gymnasium"),
    ("h5py", "h5py"),
    ("hydra", "hydra-core"),
    ("imageio", "imageio"),
    ("jax", "jax"),
    ("joblib", "joblib"),
    ("keras", "keras"),
    ("kornia", "kornia"),
    ("lightgbm", "lightgbm"),
    ("lightning", "lightning"),
    ("loguru", "loguru"),
    ("lpips", "lpips"),
    ("matplotlib", "matplotlib"),
    ("mlflow", "mlflow"),
    ("monai", "monai"),
    ("networkx", "networkx"),
    ("nltk", "nltk"),
    ("numba", "numba"),
    ("numpy", "numpy"),
    ("omegaconf", "omegaconf"),
    ("open_clip", "open-clip-torch"),
    ("optax", "optax"),
    ("optuna", "optuna"),
    ("pandas", "pandas"),
    ("peft", "peft"),
    ("pkg_resources", "setuptools"),
    ("psutil", "psutil"),
    ("pyarrow", "pyarrow"),
    ("pycocotools", "pycocotools"),
    ("pydantic", "pydantic"),
    ("pytorch_lightning", "pytorch-lightning"),
    ("requests", "requests"),
    ("rich", "rich"),
    ("safetensors", "safetensors"),
    ("scipy", "scipy"),
    ("seaborn", "seaborn"),
    ("sentence_transformers", "sentence-transformers"),
    ("sentencepiece", "sentencepiece"),
    ("skimage", "scikit-image"),
    ("sklearn", "scikit-learn"),
    ("spacy", "spacy"),
    ("tensorboard", "tensorboard"),
    ("tensorboardX", "tensorboardX"),
    ("tensorflow", "tensorflow"),
    ("termcolor", "termcolor"),
    ("tiktoken", "tiktoken"),
    ("timm", "timm"),
    ("tokenizers", "tokenizers"),
    ("torch", "torch"),
    ("torchaudio", "torchaudio"),
    ("torchmetrics", "torchmetrics"),
    ("torchvision", "torchvision"),
    ("tqdm", "tqdm"),
    ("transformers", "transformers"),
    ("trl", "trl"),
    ("wandb", "wandb"),
    ("xformers", "xformers"),
    ("xgboost", "xgboost"),
    ("yaml", "pyyaml"),
];

#[cfg(test)]
mod tests {
    use super::{Own, advice, find_own};

    #[test]
    fn nobody_is_told_to_install_a_strangers_package() {
        for name in [
            "mypkg",
            "mypkg.models",
            "apex",
            "utils",
            "utils.data",
            "nothere",
            "cv",
            "datasets",
        ] {
            assert!(
                !advice(name, None).contains("pip install"),
                "{}",
                advice(name, None)
            );
        }
        for (name, package) in [
            ("cv2", "opencv-python-headless"),
            ("yaml", "pyyaml"),
            ("sklearn", "scikit-learn"),
            ("PIL", "pillow"),
            ("torch", "torch"),
        ] {
            assert_eq!(
                advice(name, None),
                format!("install it: add `pip install {package}` to `environment.setup`")
            );
        }
        assert!(advice("sklearn.metrics", None).contains("pip install -U scikit-learn"));
        assert!(advice("_lzma", None).contains("built without"));
    }

    #[test]
    fn ones_own_code_is_found() {
        let tree = [
            "train.py",
            "src/mypkg/__init__.py",
            "src/mypkg/models.py",
            "helpers.py",
            "scripts/run.py",
            ".venv/lib/python3.11/site-packages/einops/__init__.py",
            "wandb/run-1/files/train.py",
            "space/deep/model.py",
        ];
        let own = |name: &str, start: &str| find_own(name, start, tree.iter().copied());
        let below = |folder: &str, from_start: &str| {
            Some(Own::Below {
                folder: folder.to_owned(),
                from_start: from_start.to_owned(),
            })
        };
        assert_eq!(own("mypkg", ""), below("src", "src"));
        assert_eq!(own("mypkg.models", "scripts"), below("src", "../src"));
        assert_eq!(own("helpers", "scripts"), below("", ".."));
        assert_eq!(own("helpers", ""), below("", "."));
        assert_eq!(
            own("space", ""),
            below("", "."),
            "a package without `__init__.py`"
        );
        assert_eq!(
            own("mypkg.nothere", ""),
            Some(Own::PartOf {
                package: "mypkg".to_owned()
            })
        );
        assert_eq!(
            (own("einops", ""), own("wandb", ""), own("torch", "")),
            (None, None, None)
        );
        let step = advice("mypkg", own("mypkg", "").as_ref());
        assert!(
            step.contains("`PYTHONPATH: src`") && !step.contains("pip"),
            "{step}"
        );
        assert!(
            advice(
                "yaml",
                Some(&Own::LeftOut {
                    path: "yaml".to_owned()
                })
            )
            .contains("tow init --explain")
        );
    }
}
