# Completion of tow for fish, printed by `tow completions fish`. Each Tab asks `tow`.
function __tow_complete
    set -l before (commandline --tokenize --current-process --cut-at-cursor)
    set -l typed (commandline --current-token --cut-at-cursor)
    set -l program $before[1]
    command -q $program; or set program tow
    set -l answer (command $program __complete fish $before $typed 2>/dev/null)
    printf '%s\n' $answer[2..-1]
    switch "$answer[1]"
        case files
            __fish_complete_path $typed
        case folders
            __fish_complete_directories $typed
        case 'command *'
            # As if the command of the job stood alone on the line.
            set -l first (math (string replace 'command ' '' -- $answer[1]) + 1)
            complete --do-complete (string join ' ' -- (string escape -- $before[$first..-1]) $typed)
    end
end
complete --command tow --erase
complete --command tow --no-files --keep-order --arguments '(__tow_complete)'
