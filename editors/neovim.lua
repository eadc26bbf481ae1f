-- Laws of perflaw above functions, in Neovim 0.10 or later: put this file into ~/.config/nvim/plugin/perflaw.lua.
-- :PerflawSize n=1e6 sets the size of which costs are shown; without a size it goes on to the next one.

vim.api.nvim_create_autocmd("FileType", {
  pattern = { "python", "c", "cpp", "php" },
  callback = function(event)
    vim.lsp.start({
      name = "perflaw",
      cmd = { "perflaw", "lsp" },
      root_dir = vim.fs.root(event.buf, { "perf.law", ".perflaw", "pyproject.toml", ".git" }),
    })
  end,
})

vim.api.nvim_create_autocmd({ "LspAttach", "BufEnter", "BufWritePost", "InsertLeave" }, {
  callback = function(event)
    if #vim.lsp.get_clients({ name = "perflaw", bufnr = event.buf }) > 0 then
      vim.lsp.codelens.refresh({ bufnr = event.buf })
    end
  end,
})

vim.api.nvim_create_user_command("PerflawSize", function(command)
  for _, client in ipairs(vim.lsp.get_clients({ name = "perflaw" })) do
    client.request("workspace/executeCommand", { command = "perflaw.setSize", arguments = command.fargs }, function()
      vim.lsp.codelens.refresh()
    end)
  end
end, { nargs = "?" })
