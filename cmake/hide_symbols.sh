#!/bin/sh
# Makes every symbol of an object local but those of the interface: hide_symbols.sh NM OBJCOPY OBJECT
set -eu
unique=$3.unique
"$1" "$3" | awk '$2 == "u" {print $3}' >"$unique"   # such a one becomes local only once it is weak
"$2" --weaken-symbols="$unique" "$3"
"$2" --wildcard --keep-global-symbol='_ZN5tenon2v0*' --keep-global-symbol='_ZNK5tenon2v0*' \
  --keep-global-symbol='_ZT[ISV]N5tenon2v05ErrorE' --keep-global-symbol='_ZT[ISV]N5tenon2v02nn*' \
  --keep-global-symbol='_ZT[ISV]N5tenon2v05optim*' "$3"
rm -f "$unique"
