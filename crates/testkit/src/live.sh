# Runs a command in a sandbox that is open: BELLJAR WORKSPACE RESULT FLAGS… -- COMMAND…
belljar=$1 workspace=$2 result=$3
shift 3
flags=() now=()
while [ "$1" != -- ]; do
    # What a command says is none of the sandbox's.
    case $1 in --json) now+=("$1") ;; *) flags+=("$1") ;; esac
    shift
done
shift
name=live-$$-$RANDOM
layered=$(mktemp -d -p /var/tmp) || exit 125
trap 'rm -rf "$layered"' EXIT
# What is refused at the door is refused here.
"$belljar" create --json --name "$name" --workspace "$layered" --write "$workspace" --cwd "$workspace" "${flags[@]}" \
    >/dev/null 2>"$result" || exit 125
exec 3< <(exec "$belljar" open --json "$name" 2>"$layered.open")
if ! read -r <&3; then
    tail -n 1 "$layered.open" >"$result"
    rm -f "$layered.open"
    "$belljar" rm "$name" >/dev/null
    exit 125
fi
"$belljar" exec -q "${now[@]}" --result-file "$result" "$name" -- "$@"
code=$?
"$belljar" stop "$name" >/dev/null
cat <&3 >/dev/null
"$belljar" rm "$name" >/dev/null
rm -f "$layered.open"
exit $code
