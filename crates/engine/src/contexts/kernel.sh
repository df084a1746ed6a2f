# A context: takes cells on its input, runs each where those before it ran, and tells on descriptor 3 how it ended.
# It runs inside the sandbox, beside the code of the guest: whatever it tells is checked outside.
exec {__belljar_cells}<&0 {__belljar_told}>&3 3>&- </dev/null
__belljar_tell() { # which cell, how it ended, whether it was interrupted
    local __number=$1 __frame='\x0f\x00\x00\x00\x03' __byte __at
    for __at in 0 1 2 3 4 5 6 7; do
        printf -v __byte '\\x%02x' $(((__number >> (8 * __at)) & 255))
        __frame+=$__byte
    done
    printf -v __byte '\\x%02x\\x%02x' $(($2 & 255)) "$3"
    printf "$__frame$__byte"'\x00\x00\x00\x00' >&"$__belljar_told"
}
__belljar_interrupted=0
trap ':' INT
while IFS= read -r -u "$__belljar_cells" __belljar_line; do
    [[ $__belljar_line == interrupt ]] && continue
    __belljar_code=
    LC_ALL=C IFS= read -r -N "${__belljar_line#* }" -u "$__belljar_cells" __belljar_code
    __belljar_number=${__belljar_line% *}
    __belljar_interrupted=0
    # Sourced and not called: what is declared in a function is its own. And a trap that returns ends what is sourced, however deep
    # it is in it.
    trap '__belljar_interrupted=1; return 130' INT
    . /dev/fd/9 9<<<'eval "$__belljar_code" 9<&-' {__belljar_cells}<&- {__belljar_told}>&-
    __belljar_status=$?
    trap ':' INT
    __belljar_tell "$__belljar_number" "$__belljar_status" "$__belljar_interrupted"
done
