// Starts `perflaw lsp` and asks for the size of which costs are shown.
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

async function chooseSize() {
  const size = await vscode.window.showInputBox({ prompt: "Size of which costs are shown, such as n=1e6" });
  if (size) {
    const request = { command: "perflaw.setSize", arguments: [size] };
    await client.sendRequest("workspace/executeCommand", request);
  }
}

exports.activate = (context) => {
  const settings = vscode.workspace.getConfiguration("perflaw");
  const [command, ...args] = settings.get("command");
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
  client = new LanguageClient(
    "perflaw",
    "perflaw",
    { command, args, options: { cwd: folder } },
    {
      documentSelector: ["python", "c", "cpp", "php"].map((language) => ({ scheme: "file", language })),
      initializationOptions: { at: settings.get("at"), images: true },
      synchronize: { fileEvents: vscode.workspace.createFileSystemWatcher("**/{*.law,.perflaw/*/runs/*/run.json}") },
    },
  );
  context.subscriptions.push(vscode.commands.registerCommand("perflaw.chooseSize", chooseSize), client);
  return client.start();
};
