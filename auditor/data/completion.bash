# Completion of zaudit for bash. It asks "zaudit completion --answer", which changes nothing.
_zaudit() {
    local kind value rest
    COMPREPLY=()
    while IFS=$'\t' read -r kind value rest; do
        case $kind in
            file) compopt -o default 2>/dev/null ;;
            dir) compopt -o dirnames 2>/dev/null ;;
            plain) COMPREPLY+=("$(printf %q "$value")") ;;
        esac
    done < <("$1" completion bash --answer -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o nosort -F _zaudit zaudit
