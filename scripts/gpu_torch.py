"""What the scripts begin with that hold texo against torch on an NVIDIA GPU: where texo.py lies, in the tree or in a bundle,
their options, and whether there is a torch that has the device."""
import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(p) for p in (HERE.parent / "python", *HERE.parent.glob("lib/python*")) if p.exists()]


def need(device):
    """Ends the script with 77 where torch isn't there, or has no GPU for the device cuda."""
    try:
        import torch
        if device == "cuda" and not torch.cuda.is_available():
            raise ImportError("torch sees no GPU")
    except ImportError as e:
        print(f"skipped: {e}")
        sys.exit(77)


def options(text, **more):
    """What was asked for by [TEXO], --device, --only and more: each a default, or False of a switch. text is of --help."""
    p = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("texo", nargs="?")
    for name, default in {"device": "cuda", "only": "", **more}.items():
        if default is False:
            p.add_argument(f"--{name}", action="store_true")
        else:
            p.add_argument(f"--{name}", type=type(default) if default is not None else str, default=default)
    args = p.parse_args()
    need(args.device)
    return args
